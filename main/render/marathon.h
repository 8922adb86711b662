// A Marathon group with one app a task, and one for TensorBoard: what the targets marathon and dcos
// write. Pure functions.
#pragma once

#include <string>

#include "main/render/deployment.h"

namespace disttf::render {

struct MarathonOptions {
  std::string domain;     // what Mesos' names of tasks end in
  bool own_ports = true;  // each task a port of its own; else each group's
};

[[nodiscard]] std::string marathon_group(const Deployment& deployment,
                                         const MarathonOptions& options);

}  // namespace disttf::render
