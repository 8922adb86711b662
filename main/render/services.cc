#include "main/render/services.h"

#include <cmath>

namespace disttf::render {
namespace {

Json volume_list(const Deployment& deployment) {
  Json list = Json::array();
  for (const Volume& volume : deployment.volumes) {
    list.push_back(volume.source + ":" + volume.path + (volume.read_only ? ":ro" : ""));
  }
  return list;
}

}  // namespace

Json task_services(const Deployment& deployment,
                   const std::function<void(Json&, const PlacedTask&)>& complete) {
  const auto tasks =
      place(deployment, Family::kRunsToCompletion, [](const PlacedTask& task, std::size_t) {
        return Place{.host = task.name(), .port = task.group->port};
      });
  Json services;
  for (const PlacedTask& task : tasks) {
    Json& service = services[task.name()];
    service["image"] = deployment.image.empty() ? "disttf" : deployment.image;
    for (const std::string& argument : task.arguments) {
      service["command"].push_back(replaced(argument, "$", "$$"));  // $NAME would be filled in
    }
    if (!deployment.volumes.empty()) {
      service["volumes"] = volume_list(deployment);
    }
    complete(service, task);
  }
  return services;
}

Json named_volumes(const Deployment& deployment) {
  Json json;
  for (const Volume& volume : deployment.volumes) {
    if (!volume.is_host_path()) {
      json[volume.source] = Json::object();
    }
  }
  return json;
}

Json cpus_number(double cpus) {
  if (cpus == std::floor(cpus)) {
    return static_cast<std::uint64_t>(cpus);
  }
  return cpus;
}

}  // namespace disttf::render
