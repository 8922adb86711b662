// Checks of the resources that a task may use.
#pragma once

#include "roles/doctor/core/finding.h"

namespace disttf::roles {

[[nodiscard]] Finding check_descriptors();
[[nodiscard]] Finding check_processors();
[[nodiscard]] Finding check_memory();

}  // namespace disttf::roles
