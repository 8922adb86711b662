// Plain Kubernetes, 1.27 or later: one Indexed Job for each of the cluster's jobs, and a headless
// Service that gives their pods names.
//
// A pod of an Indexed Job has the host name JOB-INDEX. With the Service's name as its subdomain, it
// resolves at JOB-INDEX.SERVICE in its namespace. The index is in the variable
// JOB_COMPLETION_INDEX, which Kubernetes expands in the arguments. A Job is complete when each
// index has exited with 0; ps exit by themselves, too.
#include <string>

#include "main/render/document.h"
#include "main/render/pod.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

Json job(const Deployment& deployment, const TaskGroup& group,
         const std::vector<std::string>& arguments) {
  Json json;
  json["apiVersion"] = "batch/v1";
  json["kind"] = "Job";
  json["metadata"] = object_metadata(deployment, pods_name(deployment, group));
  json["metadata"]["labels"]["app"] = deployment.name;
  json["spec"]["ttlSecondsAfterFinished"] = kKeptSeconds;
  json["spec"].update(indexed_job_spec(deployment, group, arguments));
  return json;
}

}  // namespace

std::string render_kubernetes(const Deployment& deployment) {
  check_program_image(deployment);
  refuse_kueue(deployment, "kubernetes", "Jobs");
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
