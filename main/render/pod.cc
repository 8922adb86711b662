#include "main/render/pod.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "main/render/run_secret.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

std::string memory(std::uint64_t mib) { return std::to_string(mib) + "Mi"; }

Json resources(const Resources& wanted) {
  Json json;
  // CPUs have no limit, so a task may use idle ones. Memory has one, because a node cannot take it
  // back.
  if (wanted.cpus) {
    json["requests"]["cpu"] = cpus_text(*wanted.cpus);
  }
  if (wanted.memory_mib) {
    json["requests"]["memory"] = memory(*wanted.memory_mib);
    json["limits"]["memory"] = memory(*wanted.memory_mib);
  }
  if (wanted.gpus != 0) {
    // Kubernetes takes the limit of an extended resource as its request, too.
    json["limits"]["nvidia.com/gpu"] = std::to_string(wanted.gpus);
  }
  return json;
}

// Numbered, because a host path is no valid name, and two paths of one claim would have the same.
std::string volume_name(std::size_t number) { return "volume-" + std::to_string(number); }

Json mounts(const Deployment& deployment) {
  Json list = Json::array();
  for (std::size_t number = 0; number < deployment.volumes.size(); ++number) {
    Json mount;
    mount["name"] = volume_name(number);
    mount["mountPath"] = deployment.volumes[number].path;
    if (deployment.volumes[number].read_only) {
      mount["readOnly"] = true;
    }
    list.push_back(std::move(mount));
  }
  return list;
}

Json volumes(const Deployment& deployment) {
  Json list = Json::array();
  for (std::size_t number = 0; number < deployment.volumes.size(); ++number) {
    const Volume& volume = deployment.volumes[number];
    Json json;
    json["name"] = volume_name(number);
    if (volume.is_host_path()) {
      json["hostPath"]["path"] = volume.source;
    } else {
      json["persistentVolumeClaim"]["claimName"] = volume.source;
    }
    list.push_back(std::move(json));
  }
  return list;
}

constexpr const char* kMetricsPath = "/metrics";

// Readable by the owner, root, and the group fsGroup.
constexpr int kPodSecretMode = 0440;
constexpr const char* kSecretFolder = "/run/secrets/disttf";
constexpr const char* kSecretFile = "secret";  // in kSecretFolder

// The secret is a file, not a variable: Kubernetes updates the file when the Secret changes, and a
// running task reads it again.
void add_secret(Json& spec, Json& container, const std::string& name) {
  Json item;
  item["key"] = kSecretVariable;
  item["path"] = kSecretFile;
  Json volume;
  volume["name"] = "secret";
  volume["secret"]["secretName"] = name;
  volume["secret"]["#defaultMode"] =
      "0440, in decimal: the group is fsGroup's. disttf takes no file that others may read.";
  volume["secret"]["defaultMode"] = kPodSecretMode;
  volume["secret"]["items"].push_back(std::move(item));
  spec["volumes"].push_back(std::move(volume));
  Json mount;
  mount["name"] = "secret";
  mount["mountPath"] = kSecretFolder;
  mount["readOnly"] = true;
  container["volumeMounts"].push_back(std::move(mount));
  container["args"].push_back(secret_flag(std::string(kSecretFolder) + "/" + kSecretFile));
}

// Copies disttf into the user's image before the task starts. The copy's size is small beside what
// the task itself asks for, so it gets the same, without the GPUs.
Json bringing_container(const Deployment& deployment, const Resources& of_task) {
  Json bringer;
  bringer["name"] = kBringer;
  bringer["image"] = disttf_image(deployment);
  bringer["args"] = json_list(bringing_words());
  Resources wanted = of_task;
  wanted.gpus = 0;
  if (Json json = resources(wanted); !json.empty()) {
    bringer["resources"] = std::move(json);
  }
  Json mount;
  mount["name"] = kBroughtVolume;
  mount["mountPath"] = kBroughtFolder;
  bringer["volumeMounts"].push_back(std::move(mount));
  return bringer;
}

// Makes disttf run the user's program in the user's image.
void add_program_to_pod(Json& spec, Json& container, const Deployment& deployment,
                        const TaskGroup& group) {
  for (const std::string& word : program_words(deployment)) {
    container["args"].push_back(without_expansion(word));
  }
  if (!is_brought(deployment)) {
    return;
  }
  Json volume;
  volume["name"] = kBroughtVolume;
  volume["emptyDir"] = Json::object();
  spec["volumes"].push_back(std::move(volume));
  Json mount;
  mount["name"] = kBroughtVolume;
  mount["mountPath"] = kBroughtFolder;
  mount["readOnly"] = true;
  container["volumeMounts"].push_back(std::move(mount));
  spec["#initContainers"] = "Brings disttf into the image of the program.";
  spec["initContainers"].push_back(bringing_container(deployment, group.resources));
}

// The image's user is not root, so files of a Secret and of a claim get its group. A folder of the
// node keeps its owner: to write there, the pod must run as root.
void add_security(Json& spec, const Deployment& deployment) {
  if (deployment.volumes.empty() && deployment.secret.empty()) {
    return;
  }
  Json& security = spec["securityContext"];
  if (std::ranges::any_of(deployment.volumes, [](const Volume& volume) {
        return volume.is_host_path() && !volume.read_only;
      })) {
    security["#runAsUser"] =
        "root: a hostPath that is written to is root's, whatever fsGroup says.";
    security["runAsUser"] = 0;
  }
  security["#fsGroup"] =
      "The group of the image's user, which then reads Secrets and writes to claims.";
  security["fsGroup"] = kImageUser;
  // Else Kubernetes changes the group of every file of a large claim at each start.
  security["fsGroupChangePolicy"] = "OnRootMismatch";
}

}  // namespace

Json scrape_annotations(std::uint16_t port) {
  Json annotations;
  annotations["prometheus.io/scrape"] = "true";
  annotations["prometheus.io/port"] = std::to_string(port);
  annotations["prometheus.io/path"] = kMetricsPath;
  return annotations;
}

Json pod_metadata(const Deployment& deployment, Json labels) {
  Json metadata;
  metadata["labels"] = std::move(labels);
  if (deployment.metrics_port) {
    metadata["annotations"] = scrape_annotations(*deployment.metrics_port);
  }
  return metadata;
}

Json pod_spec(const Deployment& deployment, const TaskGroup& group, const PodOptions& options) {
  Json port;
  port["name"] = options.port_name;
  port["containerPort"] = group.port;
  Json container;
  container["name"] = options.container;
  container["image"] = image_of(deployment, group);
  if (has_program(deployment, group.job)) {
    // Not the image's own entry point, which would get these words.
    container["command"].push_back(path_of_disttf(deployment));
  }
  container["args"] = json_list(options.arguments);
  container["ports"].push_back(std::move(port));
  if (deployment.metrics_port) {
    Json metrics;
    metrics["name"] = kMetricsPort;
    metrics["containerPort"] = *deployment.metrics_port;
    container["ports"].push_back(std::move(metrics));
  }
  if (Json wanted = resources(group.resources); !wanted.empty()) {
    container["resources"] = std::move(wanted);
  }
  Json spec;
  for (const std::string& text : group.placement) {
    const KeyValue placement = read_placement(text);
    spec["nodeSelector"][placement.key] = placement.value;
  }
  add_scheduling(deployment, options.app, spec);
  if (!deployment.volumes.empty()) {
    container["volumeMounts"] = mounts(deployment);
    spec["volumes"] = volumes(deployment);
  }
  if (!deployment.secret.empty()) {
    add_secret(spec, container, deployment.secret);
  }
  add_security(spec, deployment);
  if (has_program(deployment, group.job)) {
    add_program_to_pod(spec, container, deployment, group);
  }
  spec["containers"].push_back(std::move(container));
  return spec;
}

// Kubernetes replaces $(NAME) in arguments. $$ is a dollar sign.
std::string without_expansion(const std::string& argument) { return replaced(argument, "$", "$$"); }

Deployment without_expansion(Deployment deployment) {
  for (std::string& flag : deployment.flags) {
    flag = without_expansion(flag);
  }
  return deployment;
}

std::string pods_name(const Deployment& deployment, const TaskGroup& group) {
  return deployment.name + "-" + std::string(net::job_name(group.job));
}

Json headless_service(const Deployment& deployment) {
  Json json;
  json["apiVersion"] = "v1";
  json["kind"] = "Service";
  json["metadata"] = object_metadata(deployment, deployment.name);
  Json& spec = json["spec"];
  spec["#clusterIP"] = "Headless: it gives each pod a name, " + deployment.name + "-worker-0." +
                       deployment.name + ", and no address of its own.";
  spec["clusterIP"] = "None";
  spec["#publishNotReadyAddresses"] = "The tasks look for each other before they are ready.";
  spec["publishNotReadyAddresses"] = true;
  spec["selector"]["app"] = deployment.name;
  std::set<std::uint16_t> ports;  // Kubernetes rejects a port given twice, even by two names
  for (const TaskGroup& group : deployment.groups) {
    if (ports.insert(group.port).second) {
      Json port;
      port["name"] = net::job_name(group.job);
      port["port"] = group.port;
      spec["ports"].push_back(std::move(port));
    }
  }
  return json;
}

std::string pod_monitor_text(const Deployment& deployment, const std::string& name,
                             const char* port) {
  if (!deployment.pod_monitor) {
    return {};
  }
  Json json;
  json["apiVersion"] = "monitoring.coreos.com/v1";
  json["kind"] = "PodMonitor";
  json["metadata"] = object_metadata(deployment, name);
  json["metadata"]["labels"]["app"] = name;
  json["spec"]["selector"]["matchLabels"]["app"] = name;
  Json endpoint;
  endpoint["port"] = port;
  endpoint["path"] = kMetricsPath;
  json["spec"]["podMetricsEndpoints"].push_back(std::move(endpoint));
  return "---\n" + to_yaml_text(json);
}

std::string secret_hint(const Deployment& deployment) {
  if (deployment.secret.empty()) {
    return {};
  }
  if (!is_dns_label(replaced(deployment.secret, ".", "-"))) {
    refuse("secret", deployment.secret,
           "the name of a Secret: lower-case letters, digits, hyphens and dots, a letter first");
  }
  // From standard input: as an argument, the secret would be visible in the list of processes and
  // in the shell's history.
  return std::string(kMakeSecret) + " |\n  kubectl create secret generic " + deployment.secret +
         (deployment.name_space.empty() ? "" : " --namespace " + deployment.name_space) +
         " --from-file=" + kSecretVariable + "=/dev/stdin\n";
}

std::string to_text(const Deployment& deployment, const PodsFile& file) {
  std::string text =
      comment_lines(secret_hint(deployment) + "kubectl apply -f FILE\nkubectl logs -f " +
                    file.pods_of_result + "    the result is " + deployment.result_line() + "\n" +
                    serving_hint(deployment) + "kubectl delete -f FILE" + file.after_deleting) +
      "\n";
  // The Service first: pods that start before it exists would wait for names that do not resolve
  // yet.
  text += to_yaml_text(headless_service(deployment));
  for (const TaskGroup& group : deployment.groups) {
    const Json json = file.object(group);
    const bool is_first = &group == &deployment.groups.front();  // its comments cover the others
    text += "---\n" + to_yaml_text(is_first ? json : without_comments(json));
  }
  return text + pod_group_text(deployment) +
         pod_monitor_text(deployment, deployment.name, kMetricsPort) + serving_text(deployment);
}

std::string chief_pods_name(const Deployment& deployment) {
  return deployment.name + (deployment.group(net::Job::kChief) != nullptr ? "-chief" : "-worker");
}

Json object_metadata(const Deployment& deployment, const std::string& name) {
  Json metadata;
  metadata["name"] = name;
  if (!deployment.name_space.empty()) {
    metadata["namespace"] = deployment.name_space;
  }
  return metadata;
}

// Scheduling of pods: the scheduler, their priority, and their spread over nodes.

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

// The Indexed Job of one group of tasks: a Job of Kubernetes, or a template of a JobSet.

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
