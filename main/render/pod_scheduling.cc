// Scheduling of pods: the scheduler, their priority, and their spread over nodes.
#include "main/render/pod.h"

namespace disttf::render {
namespace {

bool places_by_volcano(const Deployment& deployment) {
  return deployment.scheduling.gang == Gang::kVolcano;
}

}  // namespace

// Without the evaluator: the run does not wait for it.
std::size_t gang_size(const Deployment& deployment) {
  return deployment.task_count() - (deployment.group(net::Job::kEvaluator) != nullptr ? 1 : 0);
}

void add_to_gang(const Deployment& deployment, const TaskGroup& group, Json& pod_template) {
  // The annotation and the scheduler belong together: another scheduler would place a pod of the
  // gang alone.
  if (places_by_volcano(deployment) && group.job != net::Job::kEvaluator) {
    pod_template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = deployment.name;
    pod_template["spec"]["schedulerName"] = kVolcano;
  }
}

std::string pod_group_text(const Deployment& deployment) {
  if (!places_by_volcano(deployment)) {
    return {};
  }
  const Scheduling& scheduling = deployment.scheduling;
  Json json;
  json["apiVersion"] = "scheduling.volcano.sh/v1beta1";
  json["kind"] = "PodGroup";
  json["metadata"] = object_metadata(deployment, deployment.name);
  json["spec"]["minMember"] = gang_size(deployment);
  if (!scheduling.queue.empty()) {
    json["spec"]["queue"] = scheduling.queue;
  }
  if (!scheduling.priority.empty()) {
    json["spec"]["priorityClassName"] = scheduling.priority;
  }
  return "---\n" + to_yaml_text(json);
}

void add_to_queue(const Deployment& deployment, Json& metadata, Json& spec) {
  if (deployment.scheduling.gang == Gang::kKueue) {
    metadata["labels"]["kueue.x-k8s.io/queue-name"] = deployment.scheduling.queue;
    spec["#suspend"] = "Kueue sets it to false when there is room for all of it.";
    spec["suspend"] = true;
  }
}

void refuse_kueue(const Deployment& deployment, std::string_view target, std::string_view objects) {
  if (deployment.scheduling.gang == Gang::kKueue) {
    refuse("gang", "kueue",
           "allowed for " + std::string(target) + ", whose " + std::string(objects) +
               " it would admit one by one; jobset, trainjob and tfjob are admitted as a whole");
  }
}

void add_scheduling(const Deployment& deployment, const std::string& app, Json& spec) {
  const Scheduling& scheduling = deployment.scheduling;
  if (!scheduling.priority.empty()) {
    spec["priorityClassName"] = scheduling.priority;
  }
  // The constraint counts pods by their label, so pods without one are not spread.
  if (!scheduling.spread.empty() && !app.empty()) {
    Json constraint;
    constraint["topologyKey"] = scheduling.spread;
    constraint["maxSkew"] = 1;
    // A preference: the run must start with fewer nodes than tasks, too.
    constraint["whenUnsatisfiable"] = "ScheduleAnyway";
    constraint["labelSelector"]["matchLabels"]["app"] = app;
    spec["topologySpreadConstraints"].push_back(std::move(constraint));
  }
}

}  // namespace disttf::render
