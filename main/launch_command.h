// `disttf launch [FLAGS] -- COMMAND [WORD...]`: runs a program as every task of a cluster.
//
// Pure functions, except that program_options() checks whether the programs exist.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/common_options.h"
#include "main/flags.h"
#include "roles/launch/core/gpu_assignment.h"
#include "roles/launch/shell/program_launcher.h"

namespace disttf {

// Further variables that decide about GPUs; roles/run/gpu_list.h has the lists.
inline constexpr const char* kDeviceOrder = "CUDA_DEVICE_ORDER";
inline constexpr const char* kCublasWorkspace = "CUBLAS_WORKSPACE_CONFIG";

// Adds the flags that only a COMMAND takes.
void add_launch_of_a_command(CLI::App& app, Flags& flags);

// Throws std::invalid_argument for a flag without effect: one of a COMMAND without a COMMAND, or
// another flag with one. With --program the COMMAND is a user's own program
// (main/program_flags.h), which takes the flags of training.
void check_launch_flags(const CLI::App& app, const Flags& flags, bool has_command);

// The GPUs of the workers, by the environment or the machine's drivers. Throws
// std::invalid_argument.
[[nodiscard]] roles::GpuOptions gpu_options(const Flags& flags, const Environment& environment);

// `search_path`: the value of PATH, empty if it is not set. Throws std::invalid_argument.
[[nodiscard]] roles::ProgramOptions program_options(const Flags& flags,
                                                    const std::vector<std::string>& command,
                                                    const std::string& search_path);

}  // namespace disttf
