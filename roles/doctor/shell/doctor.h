// `disttf doctor`: what a task finds on this machine, as this user, in this container, each thing
// tried rather than looked up where it can be.
#pragma once

#include <cstdint>
#include <optional>

namespace disttf::roles {

struct DoctorOptions {
  bool as_json = false;
  std::optional<std::uint16_t> port;  // to be tried; none: nothing is said of ports
};

// Prints the findings. What the first bad one costs a task, else kDone. REQUIRES: the process has
// confined itself as a task does (roles/process/confinement.h).
[[nodiscard]] int run_doctor(const DoctorOptions& options);

}  // namespace disttf::roles
