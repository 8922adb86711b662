// The engines that `disttf render` writes for, and what each of them gets.
//
// One file a target; this header is all that the others see of them. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "main/render/deployment.h"

namespace disttf::render {

struct Target {
  const char* name;
  const char* description;  // for the help: what it writes
  // The text of the file. Throws std::invalid_argument when the deployment has what this engine
  // does not take.
  std::string (*render)(const Deployment& deployment);
  bool makes_pods = false;  // of Kubernetes: Scheduling is for these
  bool trains = true;       // its tasks speak with each other
  // How they get a secret, as advice.
  const char* secret_advice =
      "Name what the engine keeps it by (docs/targets/README.md says how one is made), or give "
      "--secret_file with a path that they all have, or --task_cert, or --insecure";
};

// In the order in which the help lists them.
[[nodiscard]] std::span<const Target> targets();
// nullptr: there is no such target.
[[nodiscard]] const Target* find_target(std::string_view name);

}  // namespace disttf::render
