// Marathon, with Mesos-DNS.
//
// The app /mnist/worker-0 resolves as worker-0-mnist.marathon.mesos. Mesos-DNS silently truncates
// every part of a name to 24 characters. Tasks use the machine's network, so each has a port that
// Marathon reserves. Marathon restarts every task that exits, whatever its code: tasks stay up
// after the run (--on_finish=idle).
#include "main/render/marathon.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "main/render/document.h"
#include "main/render/run_secret.h"
#include "main/render/services.h"
#include "main/render/targets.h"
#include "main/render/user_program.h"

namespace disttf::render {
namespace {

// "hostname:LIKE:a|b" -> ["hostname", "LIKE", "a|b"]; "rack=a" -> ["rack", "CLUSTER", "a"].
Json marathon_constraint(const std::string& text) {
  const std::size_t colon = text.find(':');
  // KEY=VALUE may have a colon in its value, and an operator's parameter an equals sign.
  if (colon == std::string::npos || text.find('=') < colon) {
    const KeyValue placement = read_placement(text);
    return Json::array({placement.key, "CLUSTER", placement.value});
  }
  const std::size_t second = text.find(':', colon + 1);
  Json list = Json::array({text.substr(0, colon), text.substr(colon + 1, second - colon - 1)});
  const std::string name = list[1];
  constexpr std::array<std::string_view, 7> kOperators = {"UNIQUE", "CLUSTER", "GROUP_BY", "LIKE",
                                                          "UNLIKE", "MAX_PER", "IS"};
  if (colon == 0 || std::ranges::find(kOperators, name) == kOperators.end()) {
    refuse("placement", text,
           "FIELD=VALUE or FIELD:OPERATOR[:PARAMETER] with one of UNIQUE, CLUSTER, GROUP_BY, LIKE, "
           "UNLIKE, MAX_PER and IS");
  }
  if (second != std::string::npos) {
    list.push_back(text.substr(second + 1));
  }
  return list;
}

Json container(const Deployment& deployment, const std::string& image, std::uint16_t own_port) {
  Json json;
  json["type"] = "MESOS";
  json["docker"]["image"] = image;
  for (const Volume& volume : deployment.volumes) {
    Json mount;
    mount["containerPath"] = volume.path;
    mount["hostPath"] = volume.source;
    mount["mode"] = volume.read_only ? "RO" : "RW";
    json["volumes"].push_back(std::move(mount));
  }
  if (!deployment.network.empty()) {
    Json port;
    port["containerPort"] = own_port;
    port["name"] = "disttf";
    json["portMappings"].push_back(std::move(port));
  }
  return json;
}

void add_network(Json& app, const Deployment& deployment, std::uint16_t port) {
  Json network;
  if (!deployment.network.empty()) {
    network["mode"] = "container";
    network["name"] = deployment.network;
    app["networks"].push_back(std::move(network));
    return;
  }
  network["mode"] = "host";
  app["networks"].push_back(std::move(network));
  Json definition;
  definition["port"] = port;
  definition["protocol"] = "tcp";
  definition["name"] = "disttf";
  app["portDefinitions"].push_back(std::move(definition));
  // Else Marathon would give the task any free port, and the lists of the other tasks would be
  // wrong.
  app["requirePorts"] = true;
}

// An update of an app stops the old task first, since the new one needs its port.
void add_upgrade(Json& app) {
  app["upgradeStrategy"]["minimumHealthCapacity"] = 0;
  app["upgradeStrategy"]["maximumOverCapacity"] = 0;
}

Json app_with(const Deployment& deployment, const std::string& name,
              const std::vector<std::string>& arguments, const Resources& resources) {
  Json app;
  app["id"] = "/" + deployment.name + "/" + name;
  app["args"] = json_list(arguments);
  app["cpus"] = cpus_number(resources.cpus.value_or(1));
  app["mem"] = resources.memory_mib.value_or(kDefaultMemoryMib);
  return app;
}

// One app for all serving tasks: they need no number, and each uses the port of its own machine.
// The check covers liveness only: a task that waits for its first model is healthy.
Json serving_app(const Deployment& deployment) {
  const Serving& serving = deployment.serving;
  const Deployment part = serving_part(deployment);
  Json app = app_with(deployment, "serve", serving_arguments(deployment, serving.directory),
                      serving.resources);
  app["instances"] = serving.replicas;
  if (!deployment.user.empty()) {
    app["user"] = deployment.user;
  }
  app["container"] =
      container(part, deployment.image.empty() ? "disttf" : deployment.image, serving.port);
  add_network(app, deployment, serving.port);
  for (const std::string& text : serving.placement) {
    app["constraints"].push_back(marathon_constraint(text));
  }
  Json check;
  check["protocol"] = "MESOS_HTTP";
  check["path"] = kLivePath;
  check["portIndex"] = 0;
  check["intervalSeconds"] = kLiveSeconds;
  app["healthChecks"].push_back(std::move(check));
  add_upgrade(app);
  return app;
}

// Makes disttf run the user's program in the user's image. A shell command, because Mesos would
// give `args` to the image's entry point, which may be any or none.
void set_program(Json& app, const Deployment& deployment, std::vector<std::string> words) {
  words.insert(words.begin(), path_of_disttf(deployment));
  for (std::string& word : program_words(deployment)) {
    words.push_back(std::move(word));
  }
  std::string line = "exec";
  if (!deployment.job_url.empty()) {
    // Mesos unpacks an archive into the task's sandbox, and leaves another file as it is.
    Json fetched;
    fetched["uri"] = deployment.job_url;
    fetched["extract"] = true;
    app["fetch"].push_back(std::move(fetched));
    line = "cd \"$MESOS_SANDBOX\" && exec";
  }
  for (const std::string& word : words) {
    line += " " + shell_word(word);
  }
  app.erase("args");
  app["cmd"] = std::move(line);
}

Json app_of(const Deployment& deployment, const PlacedTask& task) {
  const Resources& resources = task.group->resources;
  Json app = app_with(deployment, task.name(), task.arguments, resources);
  if (has_program(deployment, task.id.job)) {
    set_program(app, deployment, task.arguments);
  }
  if (resources.gpus != 0) {
    app["gpus"] = resources.gpus;
  }
  app["instances"] = 1;
  if (!deployment.user.empty()) {
    app["user"] = deployment.user;
  }
  app["container"] = container(deployment, image_of(deployment, *task.group), task.group->port);
  add_network(app, deployment, task.address.port);
  for (const std::string& text : task.group->placement) {
    app["constraints"].push_back(marathon_constraint(text));
  }
  if (!deployment.secret.empty()) {
    app["secrets"]["disttf"]["source"] = deployment.secret;
    app["env"][kSecretVariable]["secret"] = "disttf";
  }
  add_upgrade(app);
  return app;
}

// make_deployment() allows only plain characters in the directory. Runs a shell command, because
// images differ in their entry points.
Json tensorboard_app(const Deployment& deployment, const TensorBoard& board) {
  Json app;
  app["id"] = "/" + deployment.name + "/tensorboard";
  app["cmd"] = "tensorboard --bind_all --port " + std::to_string(board.port) + " --logdir " +
               board.directory;
  app["cpus"] = cpus_number(board.resources.cpus.value_or(1));
  app["mem"] = board.resources.memory_mib.value_or(kDefaultMemoryMib);
  app["instances"] = 1;
  if (!deployment.user.empty()) {
    app["user"] = deployment.user;
  }
  app["container"] = container(deployment, board.image, board.port);
  add_network(app, deployment, board.port);
  add_upgrade(app);
  return app;
}

}  // namespace

std::string marathon_group(const Deployment& deployment, const MarathonOptions& options) {
  constexpr std::size_t kMostLabel = 24;
  check_program_image(deployment);
  refuse_bringing(deployment, "Marathon", "it runs nothing before a task");
  check_secret(deployment, "/._-", "the path of a secret: letters, digits and /._-");
  // Checked, because two truncated names could become one, and a task would find the wrong peer.
  check_length(deployment, longest_task_name(deployment) + "-" + deployment.name, kMostLabel,
               "Mesos-DNS keeps of a name");
  if (deployment.tensorboard) {
    check_length(deployment, "tensorboard-" + deployment.name, kMostLabel,
                 "Mesos-DNS keeps of a name");
  }
  const auto tasks =
      place(deployment, Family::kKeepsAlive, [&](const PlacedTask& task, std::size_t ordinal) {
        return Place{.host = task.name() + "-" + deployment.name + "." + options.domain,
                     // Marathon may put any two tasks on one machine, so no two have the same port.
                     .port = task.group->port + (options.own_ports ? ordinal : 0)};
      });
  Json group;
  group["id"] = "/" + deployment.name;
  for (const PlacedTask& task : tasks) {
    group["apps"].push_back(app_of(deployment, task));
  }
  if (deployment.tensorboard) {
    group["apps"].push_back(tensorboard_app(deployment, *deployment.tensorboard));
  }
  if (deployment.serving.replicas != 0) {
    group["apps"].push_back(serving_app(deployment));
  }
  return to_json_text(group);
}

std::string render_marathon(const Deployment& deployment) {
  refuse_evaluator(deployment, "marathon");
  refuse_metrics(deployment, "marathon");
  refuse_named_volumes(deployment, "marathon");
  refuse_ps_port(deployment, "marathon");
  return marathon_group(
      deployment, {.domain = deployment.domain.empty() ? "marathon.mesos" : deployment.domain});
}

}  // namespace disttf::render
