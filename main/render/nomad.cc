// Nomad: a batch job, as the JSON that `nomad job run -json` takes, with names from Consul.
//
// Group and index make the service mnist-worker-0, which Consul's DNS knows as
// mnist-worker-0.service.consul. The port is the machine's, so each group has one of its own, and a
// machine takes at most one task of each.
#include <string>

#include "main/render/document.h"
#include "main/render/rendered.h"

namespace disttf::render {
namespace {

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

Json task_of(const Deployment& deployment, const TaskGroup& group,
             const std::vector<std::string>& arguments) {
  const Resources& resources = group.resources;
  Json task;
  task["Name"] = "disttf";
  task["Driver"] = "docker";
  task["Config"]["image"] = deployment.image.empty() ? "disttf" : deployment.image;
  task["Config"]["args"] = json_list(arguments);
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
  return task;
}

// The machine's, too: --metrics_port, --metrics_port + 1, ... REQUIRES: there is one.
std::size_t metrics_port_of(const Deployment& deployment, const TaskGroup& group) {
  return *deployment.metrics_port + static_cast<std::size_t>(&group - deployment.groups.data());
}

// What is said of all tasks, for those of this group.
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

Json group_of(const Deployment& deployment, const TaskGroup& group, std::uint16_t port_number,
              const std::vector<std::string>& arguments) {
  Json json;
  json["Name"] = net::job_name(group.job);
  json["Count"] = group.count;
  for (const std::string& text : group.placement) {
    json["Constraints"].push_back(nomad_constraint(text));
  }
  // Exit code 0 is the end; anything else is started again, at most so often.
  Json& restart = json["RestartPolicy"];
  restart["Attempts"] = 10;
  restart["Interval"] = 3600 * kSecond;
  restart["Delay"] = 5 * kSecond;
  restart["Mode"] = "fail";
  Json port;
  port["Label"] = "disttf";
  port["Value"] = port_number;
  Json network;
  network["Mode"] = "host";
  network["ReservedPorts"].push_back(std::move(port));
  if (deployment.metrics_port) {
    Json metrics;
    metrics["Label"] = "metrics";
    metrics["Value"] = metrics_port_of(deployment, group);
    network["ReservedPorts"].push_back(std::move(metrics));
  }
  json["Networks"].push_back(std::move(network));
  Json service;
  service["Name"] =
      deployment.name + "-" + std::string(net::job_name(group.job)) + "-${NOMAD_ALLOC_INDEX}";
  service["PortLabel"] = "disttf";
  service["Provider"] = "consul";
  json["Services"].push_back(std::move(service));
  json["Tasks"].push_back(task_of(deployment, group, arguments));
  return json;
}

// The groups have the ports --port, --port + 1, ...
std::size_t port_of(const Deployment& deployment, const TaskGroup& group) {
  return group.port + static_cast<std::size_t>(&group - deployment.groups.data());
}

// Each of them is a port of the machine.
void check_metrics_ports(const Deployment& deployment) {
  constexpr std::size_t kMostPort = 65535;
  for (const TaskGroup& group : deployment.groups) {
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

}  // namespace

std::string render_nomad(const Deployment& deployment) {
  constexpr std::size_t kMostServiceName = 63;
  refuse_evaluator(deployment, "nomad");
  refuse_pod_monitor(deployment, "nomad");
  refuse_ps_port(deployment, "nomad");
  check_metrics_ports(deployment);
  check_length(deployment, deployment.name + "-" + longest_task_name(deployment), kMostServiceName,
               "a service of Consul may have");
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
  Json json;
  json["Job"] = std::move(job);
  return to_json_text(json);
}

}  // namespace disttf::render
