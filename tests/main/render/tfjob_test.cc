// render tfjob: pods as Kubeflow's training operator creates them.
#include <gmock/gmock.h>

#include "tests/main/command_lines.h"
#include "tests/main/render/round_trip.h"
#include "tests/main/render/yaml.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json tfjob_of(const std::string& line) { return parse_yaml(rendered("tfjob " + line)).at(0); }

std::string lower(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::tolower(c));
  }
  return text;
}

// The operator's rules: release 1.9 gives each pod the Service JOB-TYPE-INDEX.NAMESPACE.svc, uses
// the port named tfjob-port of the container named tensorflow, and sets TF_CONFIG there.
std::vector<Started> tfjob_tasks(const json& tfjob) {
  json cluster;
  const json& replicas = tfjob["spec"]["tfReplicaSpecs"];
  for (const auto& [type, spec] : replicas.items()) {
    const json& container = spec["template"]["spec"]["containers"].at(0);
    EXPECT_EQ(container["name"], "tensorflow");
    EXPECT_EQ(container["ports"][0]["name"], "tfjob-port");
    for (std::size_t index = 0; index < spec["replicas"]; ++index) {
      cluster[lower(type)].push_back(
          std::string(tfjob["metadata"]["name"]) + "-" + lower(type) + "-" + std::to_string(index) +
          ".default.svc:" + container["ports"][0]["containerPort"].dump());
    }
  }
  std::vector<Started> tasks;
  for (const auto& [type, addresses] : cluster.items()) {
    for (std::size_t index = 0; index < addresses.size(); ++index) {
      const json config = {{"cluster", cluster},
                           {"task", {{"type", type}, {"index", index}}},
                           {"environment", "cloud"}};
      tasks.push_back({.address = addresses[index], .words = {}, .environment = {}});
      tasks.back().environment["TF_CONFIG"] = config.dump();
      for (const auto& [name, spec] : replicas.items()) {
        if (lower(name) == type) {
          tasks.back().words = texts(spec["template"]["spec"]["containers"][0]["args"]);
        }
      }
    }
  }
  return tasks;
}

TEST(RenderTfjob, LetsMetricsBeScraped) {
  const auto all = parse_yaml(rendered("tfjob --metrics_port 9400 --pod_monitor --evaluator"));
  ASSERT_EQ(all.size(), 2U);
  for (const auto& [type, spec] : all[0]["spec"]["tfReplicaSpecs"].items()) {
    const json& pod = spec["template"];
    const json& annotations = pod["metadata"]["annotations"];
    EXPECT_EQ(annotations["prometheus.io/port"], "9400");
    EXPECT_EQ(annotations["sidecar.istio.io/inject"], "false");
    EXPECT_EQ(pod["metadata"]["labels"], all[1]["spec"]["selector"]["matchLabels"]);
    const json& ports = pod["spec"]["containers"][0]["ports"];
    EXPECT_EQ(ports[1], json({{"name", "metrics"}, {"containerPort", 9400}}));
    EXPECT_EQ(all[1]["spec"]["podMetricsEndpoints"][0]["port"], ports[1]["name"]);
  }
  for (const Started& task : tfjob_tasks(all[0])) {
    EXPECT_THAT(task.words, testing::IsSupersetOf({"--metrics_port=9400", "--metrics_host=all"}));
  }
}

TEST(RenderTfjob, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(tfjob_tasks(tfjob_of("")), {});
  expect_one_cluster(tfjob_tasks(tfjob_of("--ps 2 --workers 11 --chief --ps_port 5000")),
                     {.ps = 2, .workers = 11, .chief = true});
}

TEST(RenderTfjob, AnEvaluatorHasAPlaceInIt) {
  const json tfjob = tfjob_of("--evaluator");
  EXPECT_EQ(tfjob["spec"]["tfReplicaSpecs"]["Evaluator"]["replicas"], 1);
  const auto tasks = tfjob_tasks(tfjob);
  const Invocation invocation = parse_command_line(tasks.at(0).words, tasks.at(0).environment);
  EXPECT_NO_THROW(action_of<RunEvaluator>(invocation));
}

TEST(RenderTfjob, SaysWhatTheOperatorsDefaultsLeaveOpen) {
  const json tfjob = tfjob_of("");
  EXPECT_EQ(tfjob["apiVersion"], "kubeflow.org/v1");
  EXPECT_EQ(tfjob["spec"]["runPolicy"]["cleanPodPolicy"], "Running");
  for (const auto& [type, spec] : tfjob["spec"]["tfReplicaSpecs"].items()) {
    EXPECT_THAT((std::vector<std::string>{"PS", "Worker", "Chief", "Evaluator"}),
                testing::Contains(type));
    // With OnFailure, permanent exit codes would be retried.
    EXPECT_EQ(spec["restartPolicy"], "ExitCode") << type;
  }
  EXPECT_FALSE(tfjob["spec"]["runPolicy"].contains("backoffLimit"));  // it does not count new pods
}

TEST(RenderTfjob, RefusesANameThatWouldLeaveItStuck) {
  const std::string name(55, 'a');  // with -worker-10: 65
  EXPECT_THAT(render_refusal("tfjob --workers 11 --name " + name),
              HasSubstr("has 65 characters, a pod's Service may have at most 63"));
  for (const char* bad : {"1a", "a_b", "A", "a-", "a.b", "-a"}) {
    EXPECT_THAT(render_refusal(std::string("tfjob --name=") + bad),
                HasSubstr(std::string("--name: \"") + bad + "\" is not a name of lower-case"));
  }
}

}  // namespace
}  // namespace disttf::render
