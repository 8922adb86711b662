// The engines that `disttf render` writes files for.
//
// Each target has a file of its own; only this header exposes them. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "main/render/deployment.h"

namespace disttf::render {

struct Target {
  const char* name;
  const char* description;  // for the help: the format of the file
  // Returns the text of the file. Throws std::invalid_argument if the engine does not support a
  // part of the deployment.
  std::string (*render)(const Deployment& deployment);
  bool makes_pods = false;  // of Kubernetes, to which Scheduling applies
  bool trains = true;       // its tasks connect to each other
  // Advice for a missing secret.
  const char* secret_advice =
      "Give the engine's name of a secret (docs/targets/README.md shows how to make one), or "
      "--secret_file with a path on every machine, or --task_cert, or --insecure";
};

// All targets, in the order of the help.
[[nodiscard]] std::span<const Target> targets();
// nullptr: the target is unknown.
[[nodiscard]] const Target* find_target(std::string_view name);

// The functions behind the table of targets.cc, each in the file of its name. For main/render/
// only.
[[nodiscard]] std::string render_tfjob(const Deployment& deployment);
[[nodiscard]] std::string render_kubernetes(const Deployment& deployment);
[[nodiscard]] std::string render_jobset(const Deployment& deployment);
[[nodiscard]] std::string render_trainjob(const Deployment& deployment);
[[nodiscard]] std::string render_statefulset(const Deployment& deployment);
[[nodiscard]] std::string render_compose(const Deployment& deployment);
[[nodiscard]] std::string render_swarm(const Deployment& deployment);
[[nodiscard]] std::string render_slurm(const Deployment& deployment);
[[nodiscard]] std::string render_marathon(const Deployment& deployment);
[[nodiscard]] std::string render_dcos(const Deployment& deployment);
[[nodiscard]] std::string render_nomad(const Deployment& deployment);
[[nodiscard]] std::string render_tfmesos(const Deployment& deployment);
[[nodiscard]] std::string render_kelda(const Deployment& deployment);
[[nodiscard]] std::string render_kserve(const Deployment& deployment);

}  // namespace disttf::render
