// The functions behind the table of targets.cc, each in the file of its name. For main/render/
// only.
#pragma once

#include <string>

#include "main/render/deployment.h"

namespace disttf::render {

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
