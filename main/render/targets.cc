#include "main/render/targets.h"

#include <algorithm>
#include <array>

namespace disttf::render {
namespace {

constexpr std::array kTargets = {
    Target{"tfjob", "Kubeflow's TFJob, YAML", render_tfjob, true},
    Target{"kubernetes", "Indexed Jobs and a headless Service, YAML", render_kubernetes, true},
    Target{"jobset", "a JobSet, YAML", render_jobset, true},
    Target{"trainjob", "a TrainJob of Kubeflow Trainer 2 and its runtime, YAML", render_trainjob,
           true},
    Target{"statefulset", "StatefulSets and a headless Service of Kubernetes, YAML",
           render_statefulset, true},
    Target{"compose", "a Docker Compose file", render_compose},
    Target{"swarm", "a stack of Docker Swarm, YAML", render_swarm},
    Target{"slurm", "a batch script for sbatch", render_slurm},
    Target{"marathon", "a Marathon group, JSON", render_marathon},
    Target{"dcos", "a Marathon group of DC/OS from the TensorFlow package's options, JSON",
           render_dcos},
    Target{"nomad", "a Nomad batch job, JSON", render_nomad},
    Target{"tfmesos", "a script that calls TFMesos' tfrun", render_tfmesos, false, true,
           "Give --secret_file with a path that all machines have, or --insecure"},
    Target{"kelda", "a Kelda blueprint, main.js", render_kelda, false, true,
           "Its containers mount nothing, so there is only --insecure"},
    Target{"kserve", "an InferenceService of KServe for serving, YAML", render_kserve, true, false},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto found = std::find_if(kTargets.begin(), kTargets.end(),
                                  [name](const Target& each) { return each.name == name; });
  return found == kTargets.end() ? nullptr : &*found;
}

}  // namespace disttf::render
