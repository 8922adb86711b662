// Plain Kubernetes, 1.26 or later: one Indexed Job for each of the cluster's jobs, and a headless
// Service that gives their pods names.
//
// A pod of an Indexed Job has the host name JOB-INDEX; with the Service's name as its subdomain it
// is found at JOB-INDEX.SERVICE by everybody in its namespace. The index is in the variable
// JOB_COMPLETION_INDEX, which Kubernetes puts into the arguments. A Job is complete when each index
// has exited 0: the ps, too, end by themselves.
#include <string>

#include "main/render/document.h"
#include "main/render/pod.h"
#include "main/render/rendered.h"

namespace disttf::render {
namespace {

// Which exit codes end a Job at once, and which failures do not count.
Json failure_policy() {
  Json permanent;
  permanent["action"] = "FailJob";
  permanent["onExitCodes"]["containerName"] = "disttf";
  permanent["onExitCodes"]["operator"] = "In";
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

Json job(const Deployment& deployment, const TaskGroup& group,
         const std::vector<std::string>& arguments) {
  Json json;
  json["apiVersion"] = "batch/v1";
  json["kind"] = "Job";
  json["metadata"] = object_metadata(deployment, pods_name(deployment, group));
  json["metadata"]["labels"]["app"] = deployment.name;
  Json& spec = json["spec"];
  spec["completionMode"] = "Indexed";
  spec["completions"] = group.count;
  spec["parallelism"] = group.count;
  spec["#backoffLimit"] = "So many failed pods are replaced; disttf exits 138 when it wants that.";
  spec["backoffLimit"] = kMaxFailures;
  spec["#podFailurePolicy"] = "These codes are permanent: starting again would not help.";
  spec["podFailurePolicy"] = failure_policy();
  spec["ttlSecondsAfterFinished"] = kKeptSeconds;
  Json& pod = spec["template"];
  Json labels;
  labels["app"] = deployment.name;
  pod["metadata"] = pod_metadata(deployment, std::move(labels));
  pod["spec"]["subdomain"] = deployment.name;
  pod["spec"]["#restartPolicy"] = "A failed pod is replaced by a new one of the same name.";
  pod["spec"]["restartPolicy"] = "Never";
  pod["spec"].update(pod_spec(
      deployment, group, {.container = "disttf", .port_name = "disttf", .arguments = arguments}));
  return json;
}

}  // namespace

std::string render_kubernetes(const Deployment& deployment) {
  check_length(deployment, deployment.name + "-" + longest_task_name(deployment), kMostHostName,
               "a host name may have");
  const Deployment escaped = without_expansion(deployment);
  const auto tasks =
      place(escaped, Family::kRunsToCompletion, [&](const PlacedTask& task, std::size_t) {
        return Place{.host = escaped.name + "-" + task.name() + "." + escaped.name,
                     .port = task.group->port};
      });
  return to_text(escaped,
                 {.pods_of_result = "-l batch.kubernetes.io/job-name=" + chief_pods_name(escaped),
                  .after_deleting = {},
                  .object = [&](const TaskGroup& group) {
                    return job(escaped, group,
                               arguments_of_group(tasks, group, "$(JOB_COMPLETION_INDEX)"));
                  }});
}

}  // namespace disttf::render
