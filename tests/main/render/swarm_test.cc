// render swarm: services as a stack starts them.
#include <gmock/gmock.h>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"
#include "tests/main/render/yaml.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json stacked(const std::string& line) { return parse_yaml(rendered("swarm " + line)).at(0); }

// Other services of the stack find a service by its name.
std::vector<Started> swarm_tasks(const json& file) {
  std::vector<Started> tasks;
  for (const auto& [name, service] : file.at("services").items()) {
    EXPECT_EQ(service["deploy"]["replicas"], 1);
    EXPECT_EQ(service["deploy"]["endpoint_mode"], "dnsrr");
    tasks.push_back({.address = name + ":2222", .words = texts(service.at("command"))});
  }
  return tasks;
}

TEST(RenderSwarm, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(swarm_tasks(stacked("")), {});
  expect_one_cluster(swarm_tasks(stacked("--ps 2 --workers 11 --chief")),
                     {.ps = 2, .workers = 11, .chief = true});
}

TEST(RenderSwarm, AnEvaluatorHasAPlaceBesideTheCluster) {
  expect_one_evaluator(swarm_tasks(stacked("--evaluator --chief")));
}

TEST(RenderSwarm, WritesPlacementAndResources) {
  const json file = stacked(
      "--placement zone=a,node.role=worker --ps_placement zone=b --cpus 1.5 --memory 64 --gpus 2");
  EXPECT_EQ(file["version"], "3.8");
  const json& deploy = file["services"]["worker-1"]["deploy"];
  EXPECT_THAT(texts(deploy["placement"]["constraints"]),
              ElementsAre("node.labels.zone==a", "node.role==worker"));
  EXPECT_THAT(texts(file["services"]["ps-0"]["deploy"]["placement"]["constraints"]),
              ElementsAre("node.labels.zone==b"));
  EXPECT_EQ(deploy["resources"]["limits"]["cpus"], "1.5");
  EXPECT_EQ(deploy["resources"]["reservations"]["memory"], "64M");
  const json& gpus = deploy["resources"]["reservations"]["generic_resources"][0];
  EXPECT_EQ(gpus["discrete_resource_spec"]["value"], 2);
}

// Works without a daemon: `docker stack config` reads and checks the file, and prints the result.
TEST(RenderSwarm, IsValidForDockerItself) {
  if (run_shell("docker stack config --help").exit_code != 0) {
    GTEST_SKIP() << "no docker with `stack config` is installed here";
  }
  const ScratchDirectory scratch;
  for (const char* line : {"", "--chief --volumes /srv:/data:ro,runs:/runs --cpus 1.5 --gpus 2",
                           "--program --image r/mine:1 --gpus 1 -- python train.py"}) {
    const std::string file = scratch.write("swarm.yaml", rendered(std::string("swarm ") + line));
    const Ran ran = run_shell("docker stack config -c " + file);
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("--task_index=0"));
  }
}

TEST(RenderSwarm, RefusesANameThatIsTooLongForAService) {
  const std::string name(55, 'a');  // with _worker-10: 65
  EXPECT_THAT(render_refusal("swarm --workers 11 --name " + name),
              HasSubstr("has 65 characters, a service of Swarm may have at most 63"));
  EXPECT_EQ(render_refusal("swarm --workers 11 --name " + name.substr(2)), "(accepted)");
}

TEST(RenderSwarm, RefusesPlacementThatIsNoKeyAndValue) {
  EXPECT_EQ(render_refusal("swarm --placement zone"), "--placement: \"zone\" is not KEY=VALUE");
}

}  // namespace
}  // namespace disttf::render
