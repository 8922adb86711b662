// TF_CONFIG, the variable: set by Kubeflow's TFJob, Volcano, TonY and cloud services.
#include "net/resolvers/resolver.h"
#include "net/resolvers/tf_config.h"

namespace disttf::net {

std::optional<Found> find_in_tf_config(const ClusterFlags& /*flags*/,
                                       const Environment& environment) {
  const auto json = variable(environment, "TF_CONFIG");
  std::optional<ClusterAndTask> answer = parse_tf_config(json.value_or(""));
  if (!answer) return std::nullopt;
  Found found{std::move(*answer), {}};
  const TaskId& task = found.answer.task;
  found.facts = {{"job", std::string(job_name(task.job)), "TF_CONFIG.task.type"},
                 {"index", std::to_string(task.index), "TF_CONFIG.task.index"}};
  add_cluster_facts(found.facts, found.answer.cluster, "TF_CONFIG");
  return found;
}

}  // namespace disttf::net
