// `disttf doctor`: checks what a task needs on this machine, as this user, in this container. Where
// it can, it tries rather than looks up.
#pragma once

#include <cstdint>
#include <optional>

#include "run/process/gpus.h"

namespace disttf::roles {

struct DoctorOptions {
  bool as_json = false;
  std::optional<std::uint16_t> port;  // tried; none: no port is checked
  EnvironmentMap environment = {};    // the variables that list GPUs
};

// Prints the findings. Returns the exit code of the first bad one, else kDone. REQUIRES: the
// process has entered its sandbox as a task does (run/process/confinement.h).
[[nodiscard]] int run_doctor(const DoctorOptions& options);

}  // namespace disttf::roles
