// Docker Compose, and podman-compose: the tasks as containers of one machine.
//
// A service's name resolves for the others of the project. No container_name: with one, a second
// project could not run beside the first. No name either: older docker-compose versions reject it,
// and -p does the same.
#include <string>

#include "main/render/document.h"
#include "main/render/run_secret.h"
#include "main/render/services.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

void limit_compose_service(Json& service, const Resources& resources) {
  if (resources.cpus) {
    service["cpus"] = cpus_number(*resources.cpus);
  }
  if (resources.memory_mib) {
    service["mem_limit"] = std::to_string(*resources.memory_mib) + "m";
  }
}

// GPUs by number: all tasks are on one machine, and `count` would give each the first ones.
// `trainer`: its number among all, a separate chief first.
void add_compose_gpus(Json& service, std::uint64_t gpus, std::size_t trainer) {
  if (gpus == 0) {
    return;
  }
  Json device;
  device["driver"] = "nvidia";
  for (std::uint64_t each = 0; each < gpus; ++each) {
    device["device_ids"].push_back(std::to_string(trainer * gpus + each));
  }
  device["capabilities"].push_back("gpu");
  service["deploy"]["resources"]["reservations"]["devices"].push_back(std::move(device));
}

void complete_compose_service(Json& service, const PlacedTask& task, bool has_chief) {
  // As --max_restarts of launch.
  service["restart"] = "on-failure:10";
  limit_compose_service(service, task.group->resources);
  const bool follows_chief = has_chief && task.id.job == net::Job::kWorker;
  add_compose_gpus(service, task.group->resources.gpus, task.id.index + (follows_chief ? 1 : 0));
}

// Compose mounts the secret's file with its owner and mode, so services run as root (services.h).
void add_compose_secret(Json& json, const Deployment& deployment) {
  check_secret(deployment, "/._-+@",
               "the path of a file, from the folder of the Compose file on or from /: letters, "
               "digits and /._-+@");
  for (auto& [name, service] : json["services"].items()) {
    service["secrets"].push_back(kDockerSecret);
  }
  json["secrets"][kDockerSecret]["file"] =
      (deployment.secret.starts_with('/') || deployment.secret.starts_with('.') ? "" : "./") +
      deployment.secret;
}

// The trainers start when it has ended.
void add_compose_bringer(Json& services, const Deployment& deployment) {
  for (auto& [name, service] : services.items()) {
    if (service.contains("entrypoint")) {
      service["depends_on"][kBringer]["condition"] = "service_completed_successfully";
    }
  }
  services[kBringer] = bringing_service(deployment);
}

// serve-0, serve-1, ...: each at its own port of the machine, from --serve_port on. Compose does
// not act on an unhealthy container, but services that depend on one can wait for its health.
void add_compose_serving(Json& services, const Deployment& deployment) {
  constexpr std::size_t kMostPort = 65535;
  const Serving& serving = deployment.serving;
  for (std::size_t index = 0; index < serving.replicas; ++index) {
    const std::string name = "serve-" + std::to_string(index);
    // Each replica has its own port of the machine; within its container all use the same.
    const std::size_t published = serving.port + index;
    if (published > kMostPort) {
      refuse("serve_port", std::to_string(serving.port),
             "low enough: " + name + " would get " + std::to_string(published) +
                 ", and ports end at 65535");
    }
    Json service = serving_service(deployment);
    service["ports"].push_back(std::to_string(published) + ":" + std::to_string(serving.port));
    service["restart"] = "unless-stopped";
    service["healthcheck"] = healthcheck(kReadyPath, serving.port, kReadySeconds);
    limit_compose_service(service, serving.resources);
    services[name] = std::move(service);
  }
}

}  // namespace

std::string render_compose(const Deployment& deployment) {
  constexpr std::size_t kMostServiceName = 63;
  refuse_pod_monitor(deployment, "compose");
  refuse_placement(deployment, "compose");
  check_program_image(deployment);
  // Compose names a container PROJECT-SERVICE-1.
  check_length(deployment, deployment.name + "-" + longest_task_name(deployment) + "-1",
               kMostServiceName, "a container's host name may have");
  Json json;
  json["#services"] = "Each task is a service of its own: a replica could not know its number.";
  const bool has_chief = deployment.group(net::Job::kChief) != nullptr;
  json["services"] = task_services(deployment, [has_chief](Json& service, const PlacedTask& task) {
    complete_compose_service(service, task, has_chief);
  });
  if (!deployment.secret.empty()) {
    add_compose_secret(json, deployment);
  }
  if (is_brought(deployment)) {
    add_compose_bringer(json["services"], deployment);
  }
  add_compose_serving(json["services"], deployment);
  if (Json volumes = named_volumes(deployment); !volumes.empty()) {
    json["volumes"] = std::move(volumes);
  }
  const std::string chief = has_chief ? "chief-0" : "worker-0";
  const std::string compose = "docker compose -p " + deployment.name + " -f FILE ";
  const std::string secret =
      deployment.secret.empty()
          ? ""
          : "(umask 077; " + std::string(kMakeSecret) + " >" + deployment.secret + ")" +
                (deployment.secret.starts_with('/') ? "\n" : "    beside FILE\n");
  return comment_lines(secret + compose + "up -d\n" + compose + "logs -f " + chief +
                       "    the result is " + deployment.result_line() + "\n" + compose + "wait " +
                       chief + "    ends with its exit code\n" + compose + "down") +
         "\n" + to_yaml_text(json);
}

}  // namespace disttf::render
