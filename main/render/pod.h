// What a TFJob, a JobSet, a plain Job and a StatefulSet of Kubernetes have in common: the pod of
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
  std::string app;  // its label of that name; empty: it has none, and is not spread
  std::vector<std::string> arguments;  // "$(NAME)" in them is for Kubernetes to expand
};

// The `metadata` of a pod with these labels: what scrapers look for besides, where its task exports
// metrics.
[[nodiscard]] Json pod_metadata(const Deployment& deployment, Json labels);
// No fields of Kubernetes: what Prometheus' own sample configuration, and most charts, look at.
[[nodiscard]] Json scrape_annotations(std::uint16_t port);
// One more document: a PodMonitor, by which the Prometheus Operator scrapes pods with the label
// app=`name`, at their port of that name. Empty where nobody asked for it.
[[nodiscard]] std::string pod_monitor_text(const Deployment& deployment, const std::string& name,
                                           const char* port);
// More documents: a Deployment of the tasks that serve, the Service by which they are found,
// NAME-serve, and a PodMonitor of their own where one is asked for. Empty where nobody asked for
// them.
[[nodiscard]] std::string serving_text(const Deployment& deployment);
// A line for the head of a file: how the Secret is made that the pods read. Empty where there is
// none. Throws when its name is not one of Kubernetes.
[[nodiscard]] std::string secret_hint(const Deployment& deployment);
// A line for the head of a file: how to get there. Empty likewise.
[[nodiscard]] std::string serving_hint(const Deployment& deployment);
// Of a container: the questions by which Kubernetes knows whether it runs, and whether it answers.
void add_probes(Json& container, std::uint16_t port);

// The name of Volcano's scheduler.
inline constexpr const char* kVolcano = "volcano";
// Of the template of a group's pods: that all of the cluster are placed together, where Volcano is
// to do that. An evaluator, for whom nobody waits, is none of them.
void add_to_gang(const Deployment& deployment, const TaskGroup& group, Json& pod_template);
// The tasks of a gang: all but an evaluator.
[[nodiscard]] std::size_t gang_size(const Deployment& deployment);
// One more document: the gang as Volcano knows it. Empty where there is none.
[[nodiscard]] std::string pod_group_text(const Deployment& deployment);
// Of an object that Kueue admits as a whole: the label by which it does, and in `spec`, which
// begins what the object stands for, that it waits for that. Nothing where Kueue is not asked for.
void add_to_queue(const Deployment& deployment, Json& metadata, Json& spec);
// Throws where Kueue is asked for, which would admit each object of this target by itself.
void refuse_kueue(const Deployment& deployment, std::string_view target, std::string_view objects);
// Priority and spread, of a pod with this label `app`.
void add_scheduling(const Deployment& deployment, const std::string& app, Json& spec);

// The `spec` of a pod: container, volumes, node selector, and the run's secret as a file.
[[nodiscard]] Json pod_spec(const Deployment& deployment, const TaskGroup& group,
                            const PodOptions& options);

// Of an argument that is to arrive as it is: Kubernetes expands $(NAME), and makes $ of $$.
[[nodiscard]] std::string without_expansion(const std::string& argument);
// The same for all of the deployment's flags.
[[nodiscard]] Deployment without_expansion(Deployment deployment);

// The `spec` of an Indexed Job of the group: a pod for each index, replaced when it fails.
[[nodiscard]] Json indexed_job_spec(const Deployment& deployment, const TaskGroup& group,
                                    const std::vector<std::string>& arguments);

// The `replicatedJobs` of a JobSet that has the deployment's name. Throws when that is too long.
// `escaped`: without_expansion().
[[nodiscard]] Json replicated_jobs(const Deployment& escaped);
// The file for `kubectl apply` of what runs in one, with how it is used.
[[nodiscard]] std::string set_file(const Deployment& escaped, const std::string& objects);

// "mnist-worker": what makes the pods of a group, "mnist-worker-0" and so on.
[[nodiscard]] std::string pods_name(const Deployment& deployment, const TaskGroup& group);
// Gives every pod with the label app=NAME and the subdomain NAME a name, "mnist-worker-0.mnist".
[[nodiscard]] Json headless_service(const Deployment& deployment);

// The file for `kubectl apply`: how it is used, the Service, and an object for each group of tasks.
struct PodsFile {
  std::string pods_of_result;  // for `kubectl logs -f`: those that print the result line
  std::string after_deleting;  // a word on `kubectl delete`; may be empty
  std::function<Json(const TaskGroup&)> object;
};
[[nodiscard]] std::string to_text(const Deployment& deployment, const PodsFile& file);
// The chief's pods_name(), or without a chief the workers', of whom the first one is it.
[[nodiscard]] std::string chief_pods_name(const Deployment& deployment);

// The `metadata` of an object with this name.
[[nodiscard]] Json object_metadata(const Deployment& deployment, const std::string& name);

// The name of a port at which a task of the training exports metrics.
inline constexpr const char* kMetricsPort = "metrics";
// Of a pod.
inline constexpr std::size_t kMostHostName = 63;
// For whoever watches a job's end: finished ones stay this long.
inline constexpr int kKeptSeconds = 86'400;
// Failures of a job's tasks together that are made good. As --max_restarts of launch.
inline constexpr int kMaxFailures = 10;

}  // namespace disttf::render
