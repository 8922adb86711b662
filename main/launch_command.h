// `disttf launch [FLAGS] -- COMMAND [WORD...]`: runs a program as every task of a cluster.
//
// Pure functions, except that program_options() checks whether the programs exist.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/launch/shell/program_launcher.h"

namespace disttf {

// Adds the flags that only a COMMAND takes.
void add_launch_of_a_command(CLI::App& app, Flags& flags);

// Throws std::invalid_argument for a flag without effect: one of a COMMAND without a COMMAND, or
// another flag with one. With --program the COMMAND is a user's own program
// (main/program_flags.h), which takes the flags of training.
void check_launch_flags(const CLI::App& app, const Flags& flags, bool has_command);

// `search_path`: the value of PATH, empty if it is not set. Throws std::invalid_argument.
[[nodiscard]] roles::ProgramOptions program_options(const Flags& flags,
                                                    const std::vector<std::string>& command,
                                                    const std::string& search_path);

}  // namespace disttf
