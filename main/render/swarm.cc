// Docker Swarm: a stack of services, for `docker stack deploy`, on the stack's own overlay network.
//
// A service's name resolves for the others of the stack. endpoint_mode dnsrr resolves to the task
// itself instead of a virtual address, whose load balancer drops idle connections.
#include <string>

#include "main/render/document.h"
#include "main/render/run_secret.h"
#include "main/render/services.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

// "zone=a" is a label of the node; Swarm itself defines keys like "node.role".
std::string swarm_constraint(const std::string& text) {
  const KeyValue placement = read_placement(text);
  const bool is_known = placement.key.starts_with("node.") || placement.key.starts_with("engine.");
  return (is_known ? "" : "node.labels.") + placement.key + "==" + placement.value;
}

Json resources_of(const Resources& resources) {
  Json json;
  if (resources.cpus) {
    json["limits"]["cpus"] = cpus_text(*resources.cpus);
    // Limit and reservation are equal: Swarm places tasks by reservations only.
    json["reservations"]["cpus"] = cpus_text(*resources.cpus);
  }
  if (resources.memory_mib) {
    json["limits"]["memory"] = std::to_string(*resources.memory_mib) + "M";
    json["reservations"]["memory"] = std::to_string(*resources.memory_mib) + "M";
  }
  if (resources.gpus != 0) {
    Json spec;
    spec["discrete_resource_spec"]["kind"] = "NVIDIA-GPU";
    spec["discrete_resource_spec"]["value"] = resources.gpus;
    json["reservations"]["generic_resources"].push_back(std::move(spec));
  }
  return json;
}

void place_swarm_service(Json& deploy, const std::vector<std::string>& placement,
                         const Resources& resources) {
  for (const std::string& text : placement) {
    deploy["placement"]["constraints"].push_back(swarm_constraint(text));
  }
  if (Json wanted = resources_of(resources); !wanted.empty()) {
    deploy["resources"] = std::move(wanted);
  }
}

void complete_swarm_service(Json& service, const PlacedTask& task) {
  Json& deploy = service["deploy"];
  deploy["replicas"] = 1;
  deploy["endpoint_mode"] = "dnsrr";
  deploy["restart_policy"]["condition"] = "on-failure";
  // As --max_restarts of launch.
  deploy["restart_policy"]["max_attempts"] = 10;
  place_swarm_service(deploy, task.group->placement, task.group->resources);
}

void add_swarm_secret(Json& json, const Deployment& deployment) {
  check_secret(deployment, "._-", "the name of a secret of Swarm: letters, digits and ._-");
  Json use;
  use["source"] = kDockerSecret;
  use["target"] = kDockerSecret;
  use["mode"] = kSecretMode;
  for (auto& [name, service] : json["services"].items()) {
    service["secrets"].push_back(use);
  }
  Json& secret = json["secrets"][kDockerSecret];
  // Created outside the stack, so the file does not contain it.
  secret["external"] = true;
  secret["name"] = deployment.secret;
}

// Runs once on every node: a volume belongs to its node. Swarm does not wait for it; a trainer that
// starts earlier fails, and its restart finds disttf.
Json swarm_bringer(const Deployment& deployment) {
  Json service = bringing_service(deployment);
  service["deploy"]["mode"] = "global";
  service["deploy"]["restart_policy"]["condition"] = "on-failure";
  return service;
}

// Listens at --serve_port of every node, which forwards a connection to one of the replicas. The
// check covers liveness only: Swarm kills unhealthy tasks, and loading a model may take long.
Json swarm_serving(const Deployment& deployment) {
  const Serving& serving = deployment.serving;
  Json service = serving_service(deployment);
  Json port;
  port["target"] = serving.port;
  port["published"] = serving.port;
  port["protocol"] = "tcp";
  port["mode"] = "ingress";
  service["ports"].push_back(std::move(port));
  service["healthcheck"] = healthcheck(kLivePath, serving.port, kLiveSeconds);
  Json& deploy = service["deploy"];
  deploy["replicas"] = serving.replicas;
  // dnsrr excludes published ports of the ingress network.
  deploy["endpoint_mode"] = "vip";
  deploy["restart_policy"]["condition"] = "any";
  place_swarm_service(deploy, serving.placement, serving.resources);
  return service;
}

}  // namespace

std::string render_swarm(const Deployment& deployment) {
  constexpr std::size_t kMostServiceName = 63;
  refuse_pod_monitor(deployment, "swarm");
  check_program_image(deployment);
  // Swarm names a service STACK_SERVICE.
  check_length(deployment, deployment.name + "_" + longest_task_name(deployment), kMostServiceName,
               "a service of Swarm may have");
  Json json;
  json["#version"] = "docker stack deploy reads this version of the format.";
  json["version"] = "3.8";
  json["#services"] = "Each task is a service of its own: a replica could not know its number.";
  json["services"] = task_services(deployment, complete_swarm_service);
  if (!deployment.secret.empty()) {
    add_swarm_secret(json, deployment);
  }
  if (is_brought(deployment)) {
    json["services"][kBringer] = swarm_bringer(deployment);
  }
  if (deployment.serving.replicas != 0) {
    json["services"]["serve"] = swarm_serving(deployment);
  }
  if (Json volumes = named_volumes(deployment); !volumes.empty()) {
    json["#volumes"] = "One on each node, unless their driver shares them.";
    json["volumes"] = std::move(volumes);
  }
  const std::string& name = deployment.name;
  const std::string secret =
      deployment.secret.empty()
          ? ""
          : std::string(kMakeSecret) + " | docker secret create " + deployment.secret + " -\n";
  return comment_lines(secret + "docker stack deploy -c FILE " + name + "\n" +
                       "docker service logs -f " + name +
                       (deployment.group(net::Job::kChief) != nullptr ? "_chief-0" : "_worker-0") +
                       "    the result is " + deployment.result_line() +
                       "\n"
                       "docker stack rm " +
                       name) +
         "\n" + to_yaml_text(json);
}

}  // namespace disttf::render
