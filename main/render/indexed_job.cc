// The Indexed Job of one group of tasks: a Job of Kubernetes, or a template of a JobSet.
#include "main/render/pod.h"

namespace disttf::render {
namespace {

// Which exit codes fail a Job at once, and which failures do not count.
Json failure_policy() {
  Json permanent;
  permanent["action"] = "FailJob";
  permanent["onExitCodes"]["containerName"] = "disttf";
  permanent["onExitCodes"]["operator"] = "In";
  // Any other code, such as 138 or that of a signal, counts as a failure and is retried.
  permanent["onExitCodes"]["values"] = {1, 2, 3, 4};
  Json condition;
  condition["type"] = "DisruptionTarget";
  condition["status"] = "True";
  Json moved;
  moved["#action"] = "A pod that its node lost or evicted";
  moved["action"] = "Ignore";
  moved["onPodConditions"].push_back(std::move(condition));
  Json policy;
  policy["rules"] = {std::move(permanent), std::move(moved)};
  return policy;
}

}  // namespace

Json indexed_job_spec(const Deployment& deployment, const TaskGroup& group,
                      const std::vector<std::string>& arguments) {
  Json spec;
  spec["completionMode"] = "Indexed";
  spec["completions"] = group.count;
  // All at once: the tasks wait for each other.
  spec["parallelism"] = group.count;
  spec["#backoffLimit"] = "So many failed pods are replaced; disttf exits 138 when it wants that.";
  spec["backoffLimit"] = kMaxFailures;
  spec["#podFailurePolicy"] = "These codes are permanent: starting again would not help.";
  spec["podFailurePolicy"] = failure_policy();
  Json& pod = spec["template"];
  Json labels;
  labels["app"] = deployment.name;
  pod["metadata"] = pod_metadata(deployment, std::move(labels));
  pod["spec"]["subdomain"] = deployment.name;
  pod["spec"]["#restartPolicy"] = "A failed pod is replaced by a new one of the same name.";
  pod["spec"]["restartPolicy"] = "Never";
  pod["spec"].update(pod_spec(deployment, group,
                              {.container = "disttf",
                               .port_name = "disttf",
                               .app = deployment.name,
                               .arguments = arguments}));
  add_to_gang(deployment, group, pod);
  return spec;
}

}  // namespace disttf::render
