#include "main/render/services.h"

#include <cmath>

#include "main/render/run_secret.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

Json volume_list(const Deployment& deployment) {
  Json list = Json::array();
  for (const Volume& volume : deployment.volumes) {
    list.push_back(volume.source + ":" + volume.path + (volume.read_only ? ":ro" : ""));
  }
  return list;
}

// Compose and Swarm replace variables, $NAME, in the file before the containers see it.
void add_words(Json& service, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    service["command"].push_back(replaced(word, "$", "$$"));
  }
}

Json service_of(const Deployment& deployment, const std::vector<std::string>& arguments) {
  Json service;
  service["image"] = disttf_image(deployment);
  add_words(service, arguments);
  if (!deployment.secret.empty()) {
    service["command"].push_back(secret_flag(std::string("/run/secrets/") + kDockerSecret));
  }
  if (!deployment.volumes.empty()) {
    service["volumes"] = volume_list(deployment);
  }
  if (deployment.wants_root()) {
    service["#user"] =
        "root: volumes and the file of the secret have the owner that they have outside.";
    service["user"] = "0:0";
  }
  return service;
}

}  // namespace

namespace {

// Makes disttf run the user's program in the user's image.
void add_program_to_service(Json& service, const Deployment& deployment, const TaskGroup& group) {
  service["image"] = image_of(deployment, group);
  service["entrypoint"].push_back(path_of_disttf(deployment));
  add_words(service, program_words(deployment));
  if (is_brought(deployment)) {
    service["volumes"].push_back(std::string(kBroughtVolume) + ":" + kBroughtFolder + ":ro");
  }
}

}  // namespace

Json bringing_service(const Deployment& deployment) {
  Json service;
  service["image"] = disttf_image(deployment);
  service["command"] = json_list(bringing_words());
  service["#user"] = "root: a new volume is root's.";
  service["user"] = "0:0";
  service["volumes"].push_back(std::string(kBroughtVolume) + ":" + kBroughtFolder);
  return service;
}

Json task_services(const Deployment& deployment,
                   const std::function<void(Json&, const PlacedTask&)>& complete) {
  const auto tasks =
      place(deployment, Family::kRunsToCompletion, [](const PlacedTask& task, std::size_t) {
        return Place{.host = task.name(), .port = task.group->port};
      });
  Json services;
  for (const PlacedTask& task : tasks) {
    // The services refer to each other by these names, as place_of() above gives them.
    Json& service = services[task.name()];
    service = service_of(deployment, task.arguments);
    if (has_program(deployment, task.id.job)) {
      add_program_to_service(service, deployment, *task.group);
    }
    complete(service, task);
  }
  return services;
}

Json serving_service(const Deployment& deployment) {
  return service_of(serving_part(deployment),
                    serving_arguments(deployment, deployment.serving.directory));
}

Json healthcheck(const char* path, std::uint16_t port, int seconds) {
  Json json;
  json["#test"] = "disttf asks itself: the image holds no other program.";
  json["test"] = {"CMD", "/disttf", "healthcheck",
                  "http://127.0.0.1:" + std::to_string(port) + path};
  json["interval"] = std::to_string(seconds) + "s";
  json["timeout"] = "10s";  // healthcheck itself times out earlier
  json["retries"] = 3;
  json["start_period"] = "60s";
  return json;
}

Json named_volumes(const Deployment& deployment) {
  Json json;
  for (const Volume& volume : deployment.volumes) {
    if (!volume.is_host_path()) {
      // An empty map means the engine's default driver.
      json[volume.source] = Json::object();
    }
  }
  if (is_brought(deployment)) {
    json[kBroughtVolume] = Json::object();
  }
  return json;
}

// Whole numbers are written as 2, not as 2.0.
Json cpus_number(double cpus) {
  if (cpus == std::floor(cpus)) {
    return static_cast<std::uint64_t>(cpus);
  }
  return cpus;
}

}  // namespace disttf::render
