// Nomad: a batch job, as JSON for `nomad job run -json`, with names from Consul.
//
// Group and index make the service mnist-worker-0, which Consul's DNS resolves as
// mnist-worker-0.service.consul. Tasks use the machine's ports, so each group has its own, and a
// machine runs at most one task of each.
#include <string>

#include "main/render/document.h"
#include "main/render/run_secret.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

// Nomad counts MHz and not CPUs: a nominal clock, as no machine is known here.
constexpr std::uint64_t kMhzPerCpu = 1000;
constexpr std::int64_t kSecond = 1'000'000'000;  // Nomad's JSON counts nanoseconds

Json nomad_constraint(const std::string& text) {
  const KeyValue placement = read_placement(text);
  Json json;
  json["LTarget"] = "${" + placement.key + "}";
  json["RTarget"] = placement.value;
  json["Operand"] = "=";
  return json;
}

// The secret is a file in the task's in-memory folder for secrets. Nomad rewrites it when the
// variable changes, without a restart: a running task reads it again.
void add_nomad_secret(Json& task, const std::string& variable) {
  constexpr const char* kFile = "secrets/disttf";  // in a container below /
  Json file;
  file["EmbeddedTmpl"] =
      "{{ with nomadVar \"" + variable + "\" }}{{ ." + kSecretVariable + " }}{{ end }}";
  file["DestPath"] = kFile;
  file["Perms"] = "0400";
  file["ChangeMode"] = "noop";
  task["Templates"].push_back(std::move(file));
  task["Config"]["args"].push_back(secret_flag(std::string("/") + kFile));
}

constexpr std::uint64_t kBringerMhz = 100;
constexpr std::uint64_t kBringerMib = 64;
// The folder that the tasks of an allocation share; every user may write to it.
constexpr const char* kSharedFolder = "/alloc/data";

// Copies disttf into the allocation's folder before its task starts.
Json bringing_task(const Deployment& deployment) {
  Json task;
  task["Name"] = kBringer;
  task["Driver"] = "docker";
  task["Lifecycle"]["Hook"] = "prestart";
  task["Config"]["image"] = disttf_image(deployment);
  task["Config"]["args"] = json_list(bringing_words(kSharedFolder));
  task["Resources"]["CPU"] = kBringerMhz;
  task["Resources"]["MemoryMB"] = kBringerMib;
  return task;
}

// Makes disttf run the user's program in the user's image.
void add_program_to_nomad_task(Json& task, const Deployment& deployment) {
  task["Config"]["entrypoint"].push_back(
      path_of_disttf(deployment, std::string(kSharedFolder) + "/disttf"));
  for (const std::string& word : program_words(deployment)) {
    // Nomad replaces ${NAME} in arguments; $${ is literal.
    task["Config"]["args"].push_back(replaced(word, "${", "$${"));
  }
}

Json task_of(const Deployment& deployment, const Resources& resources,
             const std::vector<std::string>& arguments) {
  Json task;
  task["Name"] = "disttf";
  task["Driver"] = "docker";
  task["Config"]["image"] = disttf_image(deployment);
  task["Config"]["args"] = json_list(arguments);
  // Consul publishes the machine's address with the reserved port, so the task must listen there.
  task["Config"]["network_mode"] = "host";
  for (const Volume& volume : deployment.volumes) {
    task["Config"]["volumes"].push_back(volume.source + ":" + volume.path +
                                        (volume.read_only ? ":ro" : ""));
  }
  task["Resources"]["CPU"] =
      static_cast<std::uint64_t>(resources.cpus.value_or(1) * static_cast<double>(kMhzPerCpu));
  task["Resources"]["MemoryMB"] = resources.memory_mib.value_or(kDefaultMemoryMib);
  if (resources.gpus != 0) {
    Json device;
    device["Name"] = "nvidia/gpu";
    device["Count"] = resources.gpus;
    task["Resources"]["Devices"].push_back(std::move(device));
  }
  if (!deployment.secret.empty()) {
    add_nomad_secret(task, deployment.secret);
  }
  if (deployment.wants_root()) {
    task["User"] = "0:0";  // Nomad's client, which is root, creates the secret and the volumes
  }
  return task;
}

// A port of the machine as well: --metrics_port, --metrics_port + 1, ... REQUIRES: metrics_port.
std::size_t metrics_port_of(const Deployment& deployment, const TaskGroup& group) {
  return *deployment.metrics_port + static_cast<std::size_t>(&group - deployment.groups.data());
}

// The arguments of all tasks with the metrics port of this group.
std::vector<std::string> with_own_metrics_port(std::vector<std::string> arguments,
                                               const Deployment& deployment,
                                               const TaskGroup& group) {
  constexpr std::string_view kFlag = "--metrics_port=";
  for (std::string& argument : arguments) {
    if (deployment.metrics_port && argument.starts_with(kFlag)) {
      argument = std::string(kFlag) + std::to_string(metrics_port_of(deployment, group));
    }
  }
  return arguments;
}

// `mode`: the reaction to ten failures within an hour.
Json restart_policy(const char* mode) {
  Json restart;
  // As --max_restarts of launch.
  restart["Attempts"] = 10;
  restart["Interval"] = 3600 * kSecond;
  restart["Delay"] = 5 * kSecond;
  restart["Mode"] = mode;
  return restart;
}

Json host_network(const char* label, std::uint16_t number) {
  Json port;
  port["Label"] = label;
  port["Value"] = number;
  Json network;
  network["Mode"] = "host";
  network["ReservedPorts"].push_back(std::move(port));
  return network;
}

Json group_of(const Deployment& deployment, const TaskGroup& group, std::uint16_t port_number,
              const std::vector<std::string>& arguments) {
  Json json;
  json["Name"] = net::job_name(group.job);
  json["Count"] = group.count;
  for (const std::string& text : group.placement) {
    json["Constraints"].push_back(nomad_constraint(text));
  }
  // Exit code 0 completes a task; other codes restart it, at most as often as the policy says.
  json["RestartPolicy"] = restart_policy("fail");
  Json network = host_network("disttf", port_number);
  if (deployment.metrics_port) {
    Json metrics;
    metrics["Label"] = "metrics";
    metrics["Value"] = metrics_port_of(deployment, group);
    network["ReservedPorts"].push_back(std::move(metrics));
  }
  json["Networks"].push_back(std::move(network));
  Json service;
  // Nomad numbers the allocations of a group from 0, as the lists do, and a replacement keeps its
  // number.
  service["Name"] =
      deployment.name + "-" + std::string(net::job_name(group.job)) + "-${NOMAD_ALLOC_INDEX}";
  service["PortLabel"] = "disttf";
  service["Provider"] = "consul";
  json["Services"].push_back(std::move(service));
  Json task = task_of(deployment, group.resources, arguments);
  if (has_program(deployment, group.job)) {
    task["Config"]["image"] = image_of(deployment, group);
    add_program_to_nomad_task(task, deployment);
    if (is_brought(deployment)) {
      json["Tasks"].push_back(bringing_task(deployment));
    }
  }
  json["Tasks"].push_back(std::move(task));
  return json;
}

// Consul resolves mnist-serve.service.consul to the tasks whose check passes. They never exit, and
// Nomad always restarts them, so the job ends only when it is stopped.
Json serving_group(const Deployment& deployment) {
  const Serving& serving = deployment.serving;
  Json json;
  json["Name"] = "serve";
  json["Count"] = serving.replicas;
  for (const std::string& text : serving.placement) {
    json["Constraints"].push_back(nomad_constraint(text));
  }
  // "delay" waits for the next interval and tries again, where "fail" would give up.
  json["RestartPolicy"] = restart_policy("delay");
  json["Networks"].push_back(host_network("http", serving.port));
  Json check;
  check["Type"] = "http";
  check["Path"] = kReadyPath;
  check["Interval"] = kReadySeconds * kSecond;
  check["Timeout"] = kReadySeconds * kSecond;
  Json service;
  service["Name"] = deployment.name + "-serve";
  service["PortLabel"] = "http";
  service["Provider"] = "consul";
  service["Checks"].push_back(std::move(check));
  json["Services"].push_back(std::move(service));
  std::vector<std::string> arguments = serving_arguments(deployment, serving.directory);
  for (std::string& argument : arguments) {
    // Nomad replaces ${NAME} in arguments, in the user's flags as well; $${ is literal.
    argument = replaced(argument, "${", "$${");
  }
  json["Tasks"].push_back(task_of(serving_part(deployment), serving.resources, arguments));
  return json;
}

// The groups use the ports --port, --port + 1, ...
std::size_t port_of(const Deployment& deployment, const TaskGroup& group) {
  return group.port + static_cast<std::size_t>(&group - deployment.groups.data());
}

// Throws if a metrics port, a port of the machine, is that of a task.
void check_metrics_ports(const Deployment& deployment) {
  constexpr std::size_t kMostPort = 65535;
  for (const TaskGroup& group : deployment.groups) {
    // 0 without metrics: no task has that port, so nothing is refused.
    const std::size_t port = deployment.metrics_port ? metrics_port_of(deployment, group) : 0;
    for (const TaskGroup& other : deployment.groups) {
      if (port == port_of(deployment, other) || port > kMostPort) {
        refuse("metrics_port", std::to_string(*deployment.metrics_port),
               "free: nomad counts from it, and a " + std::string(net::job_name(group.job)) +
                   " would get " + std::to_string(port));
      }
    }
  }
}

// Throws if the port of the serving tasks, a port of the machine, is taken by others.
void check_serving_port(const Deployment& deployment) {
  for (const TaskGroup& group : deployment.groups) {
    const bool is_metrics =
        deployment.metrics_port && metrics_port_of(deployment, group) == deployment.serving.port;
    if (is_metrics || port_of(deployment, group) == deployment.serving.port) {
      refuse("serve_port", std::to_string(deployment.serving.port),
             "free: it is that of a " + std::string(net::job_name(group.job)));
    }
  }
}

}  // namespace

std::string render_nomad(const Deployment& deployment) {
  constexpr std::size_t kMostServiceName = 63;
  refuse_pod_monitor(deployment, "nomad");
  refuse_ps_port(deployment, "nomad");
  check_program_image(deployment);
  check_secret(deployment, "/_~-",
               "the path of a variable of Nomad, as nomad/jobs/NAME: letters, digits and /_~-");
  check_metrics_ports(deployment);
  check_length(deployment, deployment.name + "-" + longest_task_name(deployment), kMostServiceName,
               "a service of Consul may have");
  // The flags only: the index below is meant to be replaced.
  Deployment escaped = deployment;
  for (std::string& flag : escaped.flags) {
    flag = replaced(flag, "${", "$${");
  }
  const std::string domain = escaped.domain.empty() ? "service.consul" : escaped.domain;
  const auto tasks =
      place(escaped, Family::kRunsToCompletion, [&](const PlacedTask& task, std::size_t) {
        return Place{.host = escaped.name + "-" + task.name() + "." + domain,
                     .port = port_of(escaped, *task.group)};
      });
  Json job;
  job["ID"] = escaped.name;
  job["Name"] = escaped.name;
  job["Type"] = "batch";
  job["Datacenters"].push_back("*");
  for (const TaskGroup& group : escaped.groups) {
    job["TaskGroups"].push_back(
        group_of(escaped, group, static_cast<std::uint16_t>(port_of(escaped, group)),
                 with_own_metrics_port(arguments_of_group(tasks, group, "${NOMAD_ALLOC_INDEX}"),
                                       escaped, group)));
  }
  if (escaped.serving.replicas != 0) {
    check_serving_port(escaped);
    job["TaskGroups"].push_back(serving_group(escaped));
  }
  Json json;
  json["Job"] = std::move(job);
  return to_json_text(json);
}

}  // namespace disttf::render
