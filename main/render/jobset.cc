// JobSet, jobset.x-k8s.io/v1alpha2, controller 0.8 or later: all tasks are one object, which a
// queue admits as a whole.
//
// Each of the cluster's jobs is an Indexed Job of the set. The controller creates the headless
// Service with the set's name and gives a pod the host name SET-JOB-0-INDEX: there is one Job of
// each, number 0. The set is complete when all its Jobs are, and fails when one of them fails.
#include <string>

#include "main/render/document.h"
#include "main/render/pod.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

// "mnist-worker-0": the name of a Job, and the prefix of its pods' names.
std::string job_of_set(const Deployment& deployment, const TaskGroup& group) {
  return pods_name(deployment, group) + "-0";
}

Json replicated_job(const Deployment& deployment, const TaskGroup& group,
                    const std::vector<std::string>& arguments) {
  Json json;
  json["name"] = net::job_name(group.job);
  json["replicas"] = 1;
  json["template"]["spec"] = indexed_job_spec(deployment, group, arguments);
  const bool is_first = &group == &deployment.groups.front();  // its comments cover the others
  return is_first ? json : without_comments(json);
}

}  // namespace

Json replicated_jobs(const Deployment& escaped) {
  for (const TaskGroup& group : escaped.groups) {
    // By group, not with longest_task_name(): here the longest name also has the number of the Job.
    check_length(escaped, job_of_set(escaped, group) + "-" + std::to_string(group.count - 1),
                 kMostHostName, "a host name may have");
  }
  const auto tasks =
      place(escaped, Family::kRunsToCompletion, [&](const PlacedTask& task, std::size_t) {
        return Place{.host = job_of_set(escaped, *task.group) + "-" +
                             std::to_string(task.id.index) + "." + escaped.name,
                     .port = task.group->port};
      });
  Json jobs = Json::array();
  for (const TaskGroup& group : escaped.groups) {
    jobs.push_back(replicated_job(escaped, group,
                                  arguments_of_group(tasks, group, "$(JOB_COMPLETION_INDEX)")));
  }
  return jobs;
}

std::string set_file(const Deployment& escaped, const std::string& objects) {
  return comment_lines(secret_hint(escaped) +
                       "kubectl apply -f FILE\nkubectl logs -f -l batch.kubernetes.io/job-name=" +
                       chief_pods_name(escaped) + "-0    the result is " + escaped.result_line() +
                       "\n" + serving_hint(escaped) + "kubectl delete -f FILE") +
         "\n" + objects + pod_group_text(escaped) +
         pod_monitor_text(escaped, escaped.name, kMetricsPort) + serving_text(escaped);
}

std::string render_jobset(const Deployment& deployment) {
  check_program_image(deployment);
  const Deployment escaped = without_expansion(deployment);
  Json json;
  json["apiVersion"] = "jobset.x-k8s.io/v1alpha2";
  json["kind"] = "JobSet";
  json["metadata"] = object_metadata(escaped, escaped.name);
  Json& spec = json["spec"];
  add_to_queue(escaped, json["metadata"], spec);
  spec["ttlSecondsAfterFinished"] = kKeptSeconds;
  spec["replicatedJobs"] = replicated_jobs(escaped);
  return set_file(escaped, to_yaml_text(json));
}

}  // namespace disttf::render
