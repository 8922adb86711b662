#include "tests/main/render/round_trip.h"

#include <algorithm>
#include <set>

#include "tests/main/command_lines.h"

namespace disttf::render {
namespace {

// Adds --insecure if the line does not mention a secret; secret_test.cc covers secrets. Before a
// COMMAND, whose words are its own.
std::string with_decision(const std::string& line) {
  if (line.find("--secret") != std::string::npos) {
    return "render " + line;
  }
  const std::size_t end = std::min(line.find(" -- "), line.size());
  return "render " + line.substr(0, end) + " --insecure" + line.substr(end);
}

}  // namespace

std::string rendered(const std::string& line) { return action_of<Print>(with_decision(line)).text; }

std::string render_refusal(const std::string& line) { return refusal(with_decision(line)); }

roles::TrainerOptions options_of(const Started& task) {
  return action_of<RunTask>(parse_command_line(task.words, task.environment)).options;
}

void expect_one_cluster(const std::vector<Started>& tasks, const Size& size) {
  std::set<std::string> found;
  std::set<std::string> hashes;
  for (const Started& task : tasks) {
    SCOPED_TRACE(task.address);
    const roles::Task resolved = options_of(task).task;
    EXPECT_EQ(net::to_string(resolved.cluster.address_of(resolved.self)), task.address);
    EXPECT_EQ(resolved.cluster.ps.size(), size.ps);
    EXPECT_EQ(resolved.cluster.workers.size(), size.workers);
    EXPECT_EQ(resolved.cluster.chief.size(), size.chief ? 1U : 0U);
    EXPECT_TRUE(found.insert(net::to_string(resolved.self)).second)
        << net::to_string(resolved.self) << " occurs twice";
    hashes.insert(net::short_hex(net::hash_of(resolved.cluster)));
  }
  EXPECT_EQ(found.size(), size.ps + size.workers + (size.chief ? 1 : 0));
  EXPECT_EQ(hashes.size(), 1U);
}

void expect_one_evaluator(const std::vector<Started>& tasks) {
  std::size_t count = 0;
  std::set<std::string> hashes;
  for (const Started& task : tasks) {
    SCOPED_TRACE(task.address);
    const Invocation invocation = parse_command_line(task.words, task.environment);
    const auto* const evaluator = dynamic_cast<const RunEvaluator*>(invocation.action.get());
    count += evaluator != nullptr ? 1 : 0;
    const roles::Task& resolved = evaluator != nullptr
                                      ? evaluator->options.trainer.task
                                      : action_of<RunTask>(invocation).options.task;
    hashes.insert(net::short_hex(net::hash_of(resolved.cluster)));
  }
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(hashes.size(), 1U);
}

std::vector<std::string> texts(const nlohmann::json& list) {
  return list.get<std::vector<std::string>>();
}

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
