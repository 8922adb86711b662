// Checks of a task's isolation and of what it uses on this machine.
#pragma once

#include <cstdint>

#include "main/doctor/finding.h"

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

}  // namespace disttf::roles
