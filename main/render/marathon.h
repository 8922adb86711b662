// A Marathon group with one app per task, and one for TensorBoard: the output of the targets
// marathon and dcos. Pure functions.
#pragma once

#include <string>

#include "main/render/deployment.h"

namespace disttf::render {

struct MarathonOptions {
  std::string domain;     // suffix of the names of Mesos' tasks
  bool own_ports = true;  // each task has its own port; else each group has
};

[[nodiscard]] std::string marathon_group(const Deployment& deployment,
                                         const MarathonOptions& options);

}  // namespace disttf::render
