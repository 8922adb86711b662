// Checks of a task's isolation and of what it uses on this machine.
#pragma once

#include <cstdint>
#include <filesystem>

#include "main/doctor/doctor.h"
#include "run/process/gpus.h"

namespace disttf::roles {

[[nodiscard]] Finding check_kernel();
[[nodiscard]] Finding check_seccomp();
[[nodiscard]] Finding check_no_new_privileges();
[[nodiscard]] Finding check_landlock();
// Disables core dumps of this process, as a task with a secret does.
[[nodiscard]] Finding check_core_dumps();
[[nodiscard]] Finding check_shared_memory();
[[nodiscard]] Finding check_processor();
[[nodiscard]] Finding check_clock();
[[nodiscard]] Finding check_authorities();
[[nodiscard]] Finding check_port(std::uint16_t port);

// Checks of the resources that a task may use.
[[nodiscard]] Finding check_descriptors();
[[nodiscard]] Finding check_processors();
[[nodiscard]] Finding check_memory();
// The GPUs of the drivers, and those that `environment` lists. No GPU is good, too: only a user's
// own program uses one. `root`: as in find_gpus().
[[nodiscard]] Finding check_gpus(const EnvironmentMap& environment,
                                 const std::filesystem::path& root = "/");

}  // namespace disttf::roles
