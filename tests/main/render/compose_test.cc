// render compose: services as Docker Compose starts them.
#include <gmock/gmock.h>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"
#include "tests/main/render/yaml.h"
#include "tests/support/engines.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kEverything =
    "--image r/d:1 --volumes /srv/mnist:/input_data:ro,runs:/runs --cpus 2 --ps_cpus 0.5 "
    "--memory 512 --gpus 1";

json composed(const std::string& line) {
  const auto documents = parse_yaml(rendered("compose " + line));
  EXPECT_EQ(documents.size(), 1U);
  return documents.at(0);
}

// $$ is $; any other $ would begin a variable.
std::string interpolated(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '$') {
      EXPECT_EQ(text.substr(at, 2), "$$") << text;
      ++at;
    }
    out += text[at];
  }
  return out;
}

// A container's host name is its service's name; the image's entry point is disttf.
std::vector<Started> compose_tasks(const json& file) {
  std::vector<Started> tasks;
  for (const auto& [name, service] : file.at("services").items()) {
    Started task{.address = name + ":2222", .words = {}};
    for (const std::string& word : texts(service.at("command"))) {
      task.words.push_back(interpolated(word));
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

TEST(RenderCompose, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(compose_tasks(composed("")), {});
  expect_one_cluster(compose_tasks(composed("--ps 3 --workers 11 --chief")),
                     {.ps = 3, .workers = 11, .chief = true});
  expect_one_cluster(compose_tasks(composed("--workers 0 --chief")), {.workers = 0, .chief = true});
}

TEST(RenderCompose, AnEvaluatorHasAPlaceBesideTheCluster) {
  expect_one_evaluator(compose_tasks(composed("--evaluator --chief")));
}

TEST(RenderCompose, HandsTrainingFlagsToEveryTask) {
  for (const Started& task : compose_tasks(composed("--train_steps 7 --sync_replicas False"))) {
    EXPECT_EQ(options_of(task).config.train_steps, 7U);
    EXPECT_FALSE(options_of(task).config.sync_replicas);
    EXPECT_EQ(options_of(task).task.on_finish, roles::OnFinish::kExit);
  }
}

TEST(RenderCompose, KeepsADollarAsItIs) {
  for (const Started& task : compose_tasks(composed("--train_dir /$HOME/$$/${x}"))) {
    EXPECT_EQ(options_of(task).checkpoint.train_dir, "/$HOME/$$/${x}");
  }
}

TEST(RenderCompose, WritesVolumesAndResources) {
  const json file = composed(kEverything);
  const json& worker = file["services"]["worker-0"];
  EXPECT_EQ(worker["image"], "r/d:1");
  EXPECT_THAT(texts(worker["volumes"]), ElementsAre("/srv/mnist:/input_data:ro", "runs:/runs"));
  EXPECT_TRUE(file["volumes"].contains("runs"));
  EXPECT_EQ(file["volumes"].size(), 1U);
  EXPECT_EQ(worker["cpus"], 2);
  EXPECT_EQ(worker["mem_limit"], "512m");
  const auto gpus = [](const json& service) {
    return texts(service["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"]);
  };
  EXPECT_THAT(gpus(worker), ElementsAre("0"));
  EXPECT_THAT(gpus(file["services"]["worker-1"]), ElementsAre("1"));
  EXPECT_THAT(gpus(composed("--chief --gpus 2")["services"]["worker-1"]), ElementsAre("4", "5"));
  EXPECT_EQ(file["services"]["ps-0"]["cpus"], 0.5);
  EXPECT_FALSE(file["services"]["ps-0"].contains("deploy"));
}

TEST(RenderCompose, IsValidForComposeItself) {
  if (!has_program("docker-compose")) {
    test_support::skip_without_engine("docker-compose is not installed here (.ci/install engines)");
    return;
  }
  const ScratchDirectory scratch;
  for (const char* line :
       {"", kEverything, "--program --image r/mine:1 --gpus 1 -- python train.py"}) {
    const std::string file =
        scratch.write("compose.yaml", rendered(std::string("compose ") + line));
    const Ran ran = run_shell("docker-compose -f " + file + " config");
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("--task_index=0"));
  }
}

TEST(RenderCompose, RefusesWhatItHasNot) {
  EXPECT_THAT(render_refusal("compose --placement zone=a"),
              HasSubstr("--placement: \"zone=a\" is not allowed for compose"));
}

}  // namespace
}  // namespace disttf::render
