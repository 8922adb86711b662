// Kubeflow's TFJob, kubeflow.org/v1, training operator 1.0 to 1.9.
//
// The operator gives each pod a Service of its own and all addresses in TF_CONFIG, but only in the
// container named "tensorflow". The custom resource's schema accepts any word for replica types and
// policies; the ones here are those that the operator handles.
#include <string>

#include "main/render/document.h"
#include "main/render/pod.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

const char* replica_type(net::Job job) {
  switch (job) {
    case net::Job::kPs:
      return "PS";
    case net::Job::kWorker:
      return "Worker";
    case net::Job::kChief:
      return "Chief";
    case net::Job::kEvaluator:
      break;
  }
  return "Evaluator";
}

Json replica_spec(const Deployment& deployment, const TaskGroup& group) {
  std::vector<std::string> arguments{"train"};
  for (const std::string& flag : deployment.flags) {
    arguments.push_back(without_expansion(flag));
  }
  Json json;
  json["replicas"] = group.count;
  json["#restartPolicy"] =
      "From 128 on (138, signals) a new pod takes its place; 1 to 127 fail the job.";
  json["restartPolicy"] = "ExitCode";
  Json& pod = json["template"];
  if (deployment.metrics_port || !deployment.scheduling.spread.empty()) {
    Json labels;
    labels["app"] = deployment.name;  // the operator's own labels differ between its versions
    pod["metadata"] = pod_metadata(deployment, std::move(labels));
  }
  // An Istio proxy that is not up yet would drop the first connections, and one that stays up keeps
  // the pod, and with it the job, from completing.
  pod["metadata"]["annotations"]["sidecar.istio.io/inject"] = "false";
  pod["spec"] = pod_spec(deployment, group,
                         {.container = "tensorflow",
                          .port_name = "tfjob-port",
                          .app = deployment.name,
                          .arguments = arguments});
  if (deployment.scheduling.gang == Gang::kVolcano) {
    pod["spec"]["schedulerName"] = kVolcano;
  }
  const bool is_first = &group == &deployment.groups.front();  // its comments cover the others
  return is_first ? json : without_comments(json);
}

// The gang's parameters: the operator creates the PodGroup from them, if it is configured to do so.
Json scheduling_policy(const Deployment& deployment) {
  const Scheduling& scheduling = deployment.scheduling;
  Json policy;
  policy["minAvailable"] = gang_size(deployment);
  if (!scheduling.queue.empty()) {
    policy["queue"] = scheduling.queue;
  }
  if (!scheduling.priority.empty()) {
    policy["priorityClass"] = scheduling.priority;
  }
  return policy;
}

}  // namespace

std::string render_tfjob(const Deployment& deployment) {
  check_program_image(deployment);
  constexpr std::size_t kMostServiceName = 63;
  check_length(deployment, deployment.name + "-" + longest_task_name(deployment), kMostServiceName,
               "a pod's Service may have");
  Json json;
  json["apiVersion"] = "kubeflow.org/v1";
  json["kind"] = "TFJob";
  json["metadata"] = object_metadata(deployment, deployment.name);
  Json& policy = json["spec"]["runPolicy"];
  policy["#cleanPodPolicy"] =
      "What still runs after the end is removed; finished pods keep their logs.";
  policy["cleanPodPolicy"] = "Running";
  policy["#ttlSecondsAfterFinished"] = "Then the job is removed, and its name is free again.";
  policy["ttlSecondsAfterFinished"] = kKeptSeconds;
  add_to_queue(deployment, json["metadata"], policy);
  if (deployment.scheduling.gang == Gang::kVolcano) {
    policy["schedulingPolicy"] = scheduling_policy(deployment);
  }
  for (const TaskGroup& group : deployment.groups) {
    json["spec"]["tfReplicaSpecs"][replica_type(group.job)] = replica_spec(deployment, group);
  }
  return comment_lines(secret_hint(deployment) +
                       "kubectl apply -f FILE\n"
                       "kubectl logs -f " +
                       deployment.name +
                       (deployment.group(net::Job::kChief) != nullptr ? "-chief-0" : "-worker-0") +
                       "    the result is " + deployment.result_line() + "\n" +
                       serving_hint(deployment) + "kubectl delete -f FILE") +
         "\n" + to_yaml_text(json) + pod_monitor_text(deployment, deployment.name, kMetricsPort) +
         serving_text(deployment);
}

}  // namespace disttf::render
