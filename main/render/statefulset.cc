// Plain Kubernetes without Jobs: one StatefulSet for each of the cluster's jobs, and a headless
// Service that gives their pods names.
//
// A pod of a StatefulSet has the host name SET-ORDINAL, from which --resolver statefulset derives
// its task; the pattern of all such names gives the others. A StatefulSet restarts every pod that
// exits, so tasks stay up after the run.
#include <string>

#include "main/render/document.h"
#include "main/render/pod.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

// The arguments of each pod of the group: the role, the pattern, the counts, the flags.
std::vector<std::string> arguments_of(const Deployment& deployment, const TaskGroup& group) {
  std::vector<std::string> words = {std::string(net::job_name(group.job)), "--resolver=statefulset",
                                    "--task_hosts=" + deployment.name + "-{job}-{index}." +
                                        deployment.name + ":" + std::to_string(group.port)};
  std::size_t workers = 0;
  for (const TaskGroup& each : deployment.groups) {
    if (each.job == net::Job::kWorker) {
      workers = each.count;
    } else if (each.job != net::Job::kEvaluator) {  // an evaluator is in no list
      words.push_back(each.job == net::Job::kPs ? "--ps=" + std::to_string(each.count) : "--chief");
    }
  }
  words.push_back("--workers=" + std::to_string(workers));
  words.emplace_back("--on_finish=idle");
  words.insert(words.end(), deployment.flags.begin(), deployment.flags.end());
  return words;
}

Json stateful_set(const Deployment& deployment, const TaskGroup& group) {
  Json labels;
  labels["app"] = deployment.name;
  labels["job"] = net::job_name(group.job);
  Json json;
  json["apiVersion"] = "apps/v1";
  json["kind"] = "StatefulSet";
  json["metadata"] = object_metadata(deployment, pods_name(deployment, group));
  json["metadata"]["labels"] = labels;
  Json& spec = json["spec"];
  spec["#serviceName"] = "The Service above; it makes the pods' names.";
  spec["serviceName"] = deployment.name;
  spec["replicas"] = group.count;
  spec["#podManagementPolicy"] = "All at once: they wait for each other.";
  spec["podManagementPolicy"] = "Parallel";
  // With the label of the job: the sets of a run must not select each other's pods.
  spec["selector"]["matchLabels"] = labels;
  Json& pod = spec["template"];
  pod["metadata"] = pod_metadata(deployment, labels);
  pod["spec"] = pod_spec(deployment, group,
                         {.container = "disttf",
                          .port_name = "disttf",
                          .app = deployment.name,
                          .arguments = arguments_of(deployment, group)});
  add_to_gang(deployment, group, pod);
  return json;
}

}  // namespace

std::string render_statefulset(const Deployment& deployment) {
  check_program_image(deployment);
  refuse_kueue(deployment, "statefulset", "StatefulSets");
  // A label of each pod is the set's name and 11 more characters; a label has 63.
  constexpr std::size_t kMostSetName = 52;
  for (const TaskGroup& group : deployment.groups) {
    if (group.port != deployment.groups.back().port) {
      refuse("ps_port", std::to_string(group.port),
             "allowed for statefulset, which has one pattern for all addresses");
    }
    check_length(deployment, pods_name(deployment, group), kMostSetName,
                 "a StatefulSet that has pods may have");
  }
  check_length(deployment, deployment.name + "-" + longest_task_name(deployment), kMostHostName,
               "a host name may have");
  const Deployment escaped = without_expansion(deployment);
  return to_text(escaped,
                 {.pods_of_result = chief_pods_name(escaped) + "-0",
                  .after_deleting = "    the pods stay until then",
                  .object = [&](const TaskGroup& group) { return stateful_set(escaped, group); }});
}

}  // namespace disttf::render
