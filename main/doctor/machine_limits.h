// Checks of the resources that a task may use.
#pragma once

#include <filesystem>

#include "main/doctor/finding.h"
#include "run/process/gpus.h"

namespace disttf::roles {

[[nodiscard]] Finding check_descriptors();
[[nodiscard]] Finding check_processors();
[[nodiscard]] Finding check_memory();
// The GPUs of the drivers, and those that `environment` lists. No GPU is good, too: only a user's
// own program uses one. `root`: as in find_gpus().
[[nodiscard]] Finding check_gpus(const EnvironmentMap& environment,
                                 const std::filesystem::path& root = "/");

}  // namespace disttf::roles
