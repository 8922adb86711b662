// The parts that a TFJob, a JobSet, a plain Job and a StatefulSet of Kubernetes share: the pod of
// one task, and the Service that names pods. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "main/render/deployment.h"
#include "main/render/document.h"

namespace disttf::render {

struct PodOptions {
  std::string container;  // its name
  std::string port_name;
  std::string app;  // the value of its label "app"; empty: no label, and not spread
  std::vector<std::string> arguments;  // Kubernetes expands "$(NAME)" in them
};

// The `metadata` of a pod with these labels, and with annotations for scrapers if its task exports
// metrics.
[[nodiscard]] Json pod_metadata(const Deployment& deployment, Json labels);
// Annotations that are no fields of Kubernetes: Prometheus' sample configuration and most charts
// look for them.
[[nodiscard]] Json scrape_annotations(std::uint16_t port);
// A further document: a PodMonitor, by which the Prometheus Operator scrapes port `port` of pods
// with the label app=`name`. Empty without --pod_monitor.
[[nodiscard]] std::string pod_monitor_text(const Deployment& deployment, const std::string& name,
                                           const char* port);
// Further documents: a Deployment of the serving tasks, the Service NAME-serve that leads to them,
// and a PodMonitor with --pod_monitor. Empty without --serve.
[[nodiscard]] std::string serving_text(const Deployment& deployment);
// A line for the head of the file: how to create the Secret that the pods read. Empty without
// --secret. Throws if its name is not valid in Kubernetes.
[[nodiscard]] std::string secret_hint(const Deployment& deployment);
// A line for the head of the file: how to reach the serving tasks. Empty without --serve.
[[nodiscard]] std::string serving_hint(const Deployment& deployment);
// Adds the probes by which Kubernetes checks whether a container runs and whether it is ready.
void add_probes(Json& container, std::uint16_t port);

// The name of Volcano's scheduler.
inline constexpr const char* kVolcano = "volcano";
// Makes Volcano, if it is asked for, place the group's pods with all others of the cluster. Leaves
// out an evaluator, because no task waits for it.
void add_to_gang(const Deployment& deployment, const TaskGroup& group, Json& pod_template);
// The number of tasks in a gang: all except an evaluator.
[[nodiscard]] std::size_t gang_size(const Deployment& deployment);
// A further document: the gang as Volcano's PodGroup. Empty without --gang volcano.
[[nodiscard]] std::string pod_group_text(const Deployment& deployment);
// Adds the label by which Kueue admits an object as a whole, and in `spec`, the start of the
// object's own, that it is suspended until then. Does nothing without --gang kueue.
void add_to_queue(const Deployment& deployment, Json& metadata, Json& spec);
// Throws with --gang kueue, which would admit each object of this target by itself.
void refuse_kueue(const Deployment& deployment, std::string_view target, std::string_view objects);
// Adds priority and spread to the spec of a pod whose label `app` has this value.
void add_scheduling(const Deployment& deployment, const std::string& app, Json& spec);

// The `spec` of a pod: container, volumes, node selector, and the run's secret as a file.
[[nodiscard]] Json pod_spec(const Deployment& deployment, const TaskGroup& group,
                            const PodOptions& options);

// The argument for literal use: Kubernetes expands $(NAME), and turns $$ into $.
[[nodiscard]] std::string without_expansion(const std::string& argument);
// The same for all of the deployment's flags.
[[nodiscard]] Deployment without_expansion(Deployment deployment);

// The `spec` of an Indexed Job of the group: a pod for each index, replaced when it fails.
[[nodiscard]] Json indexed_job_spec(const Deployment& deployment, const TaskGroup& group,
                                    const std::vector<std::string>& arguments);

// The `replicatedJobs` of a JobSet that has the deployment's name. Throws if the name is too long.
// `escaped` has passed without_expansion().
[[nodiscard]] Json replicated_jobs(const Deployment& escaped);
// The file for `kubectl apply` of `objects`, with its usage as comments.
[[nodiscard]] std::string set_file(const Deployment& escaped, const std::string& objects);

// "mnist-worker": the owner of a group's pods, "mnist-worker-0" and so on.
[[nodiscard]] std::string pods_name(const Deployment& deployment, const TaskGroup& group);
// Resolves "mnist-worker-0.mnist" for every pod with the label app=NAME and the subdomain NAME.
[[nodiscard]] Json headless_service(const Deployment& deployment);

// The file for `kubectl apply`: its usage, the Service, and an object for each group of tasks.
struct PodsFile {
  std::string pods_of_result;  // arguments of `kubectl logs -f`: the pods that print the result
  std::string after_deleting;  // a remark on `kubectl delete`; may be empty
  std::function<Json(const TaskGroup&)> object;
};
[[nodiscard]] std::string to_text(const Deployment& deployment, const PodsFile& file);
// pods_name() of the chief, or without a chief task of the workers, whose first one is the chief.
[[nodiscard]] std::string chief_pods_name(const Deployment& deployment);

// The `metadata` of an object with this name.
[[nodiscard]] Json object_metadata(const Deployment& deployment, const std::string& name);

// The name of the port at which a training task exports metrics.
inline constexpr const char* kMetricsPort = "metrics";
// The longest host name of a pod.
inline constexpr std::size_t kMostHostName = 63;
// Seconds for which finished jobs stay, so that their end can be observed.
inline constexpr int kKeptSeconds = 86'400;
// How many failures of a job's tasks together are retried, as with --max_restarts of launch.
inline constexpr int kMaxFailures = 10;

}  // namespace disttf::render
