// render nomad: allocations as Nomad starts them and Consul names them.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"
#include "tests/support/engines.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

json nomad_job(const std::string& line) { return json::parse(rendered("nomad " + line)).at("Job"); }

// ${NOMAD_ALLOC_INDEX} becomes the index, $${ becomes ${.
std::string interpolated(std::string text, std::size_t index) {
  const std::string name = "${NOMAD_ALLOC_INDEX}";
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 3, "$${") == 0) {
      out += "${";
      at += 2;
    } else if (text.compare(at, name.size(), name) == 0) {
      out += std::to_string(index);
      at += name.size() - 1;
    } else {
      EXPECT_NE(text.compare(at, 2, "${"), 0) << text;
      out += text[at];
    }
  }
  return out;
}

std::vector<Started> nomad_tasks(const json& job) {
  std::vector<Started> tasks;
  for (const json& group : job["TaskGroups"]) {
    const json& port = group["Networks"].at(0)["ReservedPorts"].at(0);
    const json& service = group["Services"].at(0);
    EXPECT_EQ(service["PortLabel"], port["Label"]);
    for (std::size_t index = 0; index < group["Count"]; ++index) {
      Started task{.address = interpolated(service["Name"], index) +
                              ".service.consul:" + port["Value"].dump(),
                   .words = {},
                   .environment = {{"NOMAD_GROUP_NAME", group["Name"]},
                                   {"NOMAD_ALLOC_INDEX", std::to_string(index)}}};
      for (const std::string& word : texts(group["Tasks"].at(0)["Config"]["args"])) {
        task.words.push_back(interpolated(word, index));
      }
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

TEST(RenderNomad, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(nomad_tasks(nomad_job("")), {});
  expect_one_cluster(nomad_tasks(nomad_job("--name m --ps 2 --workers 11 --chief")),
                     {.ps = 2, .workers = 11, .chief = true});
}

TEST(RenderNomad, AnEvaluatorHasAPlaceBesideTheCluster) {
  expect_one_evaluator(nomad_tasks(nomad_job("--evaluator --chief")));
}

TEST(RenderNomad, KeepsTextThatNomadWouldInterpolate) {
  for (const Started& task : nomad_tasks(nomad_job("--train_dir /${NOMAD_ALLOC_INDEX}/$x"))) {
    EXPECT_EQ(options_of(task).checkpoint.train_dir, "/${NOMAD_ALLOC_INDEX}/$x");
  }
}

TEST(RenderNomad, IsABatchJobThatEndsWithCodeZero) {
  EXPECT_EQ(nomad_job("")["Type"], "batch");
  EXPECT_EQ(nomad_job("")["TaskGroups"][0]["RestartPolicy"]["Mode"], "fail");
  for (const Started& task : nomad_tasks(nomad_job(""))) {
    EXPECT_EQ(options_of(task).task.on_finish, roles::OnFinish::kExit);
  }
}

TEST(RenderNomad, WritesVolumesResourcesAndPlacement) {
  const json group = nomad_job(
      "--volumes /srv:/data:ro --cpus 1.5 --memory 64 --gpus 1 --placement attr.cpu.arch=amd64")
      ["TaskGroups"][1];
  EXPECT_EQ(group["Constraints"], json::parse(R"([{"LTarget": "${attr.cpu.arch}",
                                                   "RTarget": "amd64", "Operand": "="}])"));
  const json& task = group["Tasks"][0];
  EXPECT_EQ(task["Config"]["volumes"], json({"/srv:/data:ro"}));
  EXPECT_EQ(task["Resources"]["CPU"], 1500);
  EXPECT_EQ(task["Resources"]["MemoryMB"], 64);
  EXPECT_EQ(task["Resources"]["Devices"][0]["Name"], "nvidia/gpu");
}

// Validates a job with the rules of a Nomad server.
class NomadsOwnRules : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kJudge)) {
      test_support::skip_without_engine(
          "there is no build/tools/nomad_validate (.ci/tools nomad_validate makes it)");
    }
  }
  static Ran judged(const std::string& job) {
    const ScratchDirectory scratch;
    return run_shell(std::string(kJudge) + " <" + scratch.write("job.json", job));
  }

 private:
  static constexpr const char* kJudge =
      DISTTF_SOURCE_DIR "/build/tools/nomad_validate/nomad_validate";
};

TEST_F(NomadsOwnRules, TakeWhatIsRendered) {
  for (const char* words :
       {"", "--chief --ps 2 --workers 11", "--evaluator --chief --metrics_port 9400",
        "--volumes /srv:/data:ro --cpus 1.5 --memory 64 --gpus 1 --placement "
        "attr.cpu.arch=amd64 --secret mnist-secret",
        "--volumes runs:/runs --train_dir /runs/1 --serve 2",
        "--program --image r/mine:1 --gpus 1 --secret mnist-secret -- python train.py"}) {
    const Ran ran = judged(rendered(std::string("nomad ") + words));
    EXPECT_EQ(ran.exit_code, 0) << words << ": " << ran.output;
  }
}

// Otherwise the accepted jobs would prove nothing.
TEST_F(NomadsOwnRules, RefuseWhatNomadCannotRun) {
  json job = json::parse(rendered("nomad"));
  json other = job;
  other["Job"]["TaskGroups"][0]["RestartPolicy"]["Mode"] = "sometimes";
  EXPECT_THAT(judged(other.dump()).output, HasSubstr("restart mode: \"sometimes\""));
  other = job;
  other["Job"]["TaskGroups"][1]["Count"] = -3;
  EXPECT_EQ(judged(other.dump()).exit_code, 1);
  other = job;
  other["Job"]["TaskGroups"][1]["Cuont"] = 3;
  EXPECT_THAT(judged(other.dump()).output, HasSubstr("Cuont"));
}

TEST(RenderNomad, RefusesWhatItHasNot) {
  EXPECT_THAT(render_refusal("nomad --ps_port 1"), StartsWith("--ps_port: "));
  EXPECT_THAT(render_refusal("nomad --port 65535"), StartsWith("--port: \"65535\" is not low"));
}

// The tasks use the machine's network: only one task of each group may run on a machine.
TEST(RenderNomad, ReservesAPortForTheMetricsOfEachGroup) {
  const json job = nomad_job("--chief --metrics_port 9400");
  int expected = 9400;
  for (const json& group : job["TaskGroups"]) {
    const json& port = group["Networks"].at(0)["ReservedPorts"].at(1);
    EXPECT_EQ(port, json({{"Label", "metrics"}, {"Value", expected}}));
    EXPECT_THAT(texts(group["Tasks"].at(0)["Config"]["args"]),
                testing::Contains("--metrics_port=" + std::to_string(expected)));
    ++expected;
  }
  EXPECT_EQ(render_refusal("nomad --chief --metrics_port 2220"),
            "--metrics_port: \"2220\" is not free: nomad counts from it, and a worker would get "
            "2222");
  EXPECT_THAT(render_refusal("nomad --metrics_port 65535"), StartsWith("--metrics_port: "));
}

}  // namespace
}  // namespace disttf::render
