#include "tests/main/render/marathon_apps.h"

namespace disttf::render {

std::vector<Started> marathon_tasks(const nlohmann::json& group, const std::string& domain) {
  std::vector<Started> tasks;
  for (const nlohmann::json& app : group.at("apps")) {
    const std::string id = app["id"];
    if (id.ends_with("/tensorboard")) {
      continue;  // not a task of the cluster
    }
    EXPECT_TRUE(id.starts_with(std::string(group["id"]) + "/")) << id;
    EXPECT_EQ(app["instances"], 1) << id;
    EXPECT_EQ(app["container"]["type"], "MESOS") << id;
    const std::size_t slash = id.find('/', 1);
    const std::string name = id.substr(slash + 1) + "-" + id.substr(1, slash - 1);
    const nlohmann::json& port = app["networks"].at(0)["mode"] == "host"
                                     ? app["portDefinitions"].at(0)["port"]
                                     : app["container"]["portMappings"].at(0)["containerPort"];
    tasks.push_back({.address = name.substr(0, 24) + "." + domain + ":" + port.dump(),
                     .words = texts(app["args"]),
                     .environment = {{"MARATHON_APP_ID", id}}});
  }
  return tasks;
}

}  // namespace disttf::render
