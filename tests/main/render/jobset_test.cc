// render jobset, render trainjob: pods as JobSet's controller, the Job controller and the kubelet
// create them.
#include <gmock/gmock.h>

#include <string>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/yaml.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json jobset_of(const std::string& line) { return parse_yaml(rendered("jobset " + line)).at(0); }

// Job 0 of each entry: its pods have the host names SET-ENTRY-0-INDEX. The controller makes a
// Service with the set's name, which gives them DNS names.
std::vector<Started> jobset_tasks(const json& jobset) {
  const std::string set = jobset["metadata"]["name"];
  std::vector<Started> tasks;
  for (const json& entry : jobset["spec"]["replicatedJobs"]) {
    EXPECT_EQ(entry["replicas"], 1);
    const json& job = entry["template"]["spec"];
    EXPECT_EQ(job["completionMode"], "Indexed");
    EXPECT_EQ(job["completions"], job["parallelism"]);
    EXPECT_EQ(job["template"]["spec"]["subdomain"], set);
    const json& container = job["template"]["spec"]["containers"].at(0);
    for (std::size_t index = 0; index < job["completions"]; ++index) {
      const std::string host =
          set + "-" + std::string(entry["name"]) + "-0-" + std::to_string(index);
      tasks.push_back(
          {.address = host + "." + set + ":" + container["ports"][0]["containerPort"].dump(),
           .words = {},
           .environment = {{"JOB_COMPLETION_INDEX", std::to_string(index)}, {"HOSTNAME", host}}});
      for (std::string word : texts(container["args"])) {
        if (word == "--task_index=$(JOB_COMPLETION_INDEX)") {
          word = "--task_index=" + std::to_string(index);
        }
        tasks.back().words.push_back(word);
      }
    }
  }
  return tasks;
}

TEST(RenderJobSet, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(jobset_tasks(jobset_of("")), {});
  expect_one_cluster(jobset_tasks(jobset_of("--name m --ps 2 --workers 11 --chief --port 5000")),
                     {.ps = 2, .workers = 11, .chief = true});
  expect_one_evaluator(jobset_tasks(jobset_of("--evaluator --chief")));
}

// The JobSet would replace a Job that is removed alone.
TEST(RenderJobSet, IsRemovedAsAWhole) {
  const json spec = jobset_of("--namespace ml")["spec"];
  EXPECT_EQ(spec["ttlSecondsAfterFinished"], 86'400);
  for (const json& entry : spec["replicatedJobs"]) {
    EXPECT_FALSE(entry["template"]["spec"].contains("ttlSecondsAfterFinished"));
  }
}

TEST(RenderJobSet, LetsMetricsBeScraped) {
  const auto all = parse_yaml(rendered("jobset --metrics_port 9400 --pod_monitor"));
  ASSERT_EQ(all.size(), 2U);
  for (const json& entry : all[0]["spec"]["replicatedJobs"]) {
    EXPECT_EQ(entry["template"]["spec"]["template"]["metadata"]["labels"],
              all[1]["spec"]["selector"]["matchLabels"]);
  }
}

// Trainer makes a JobSet with the TrainJob's name from the runtime.
TEST(RenderTrainJob, RunsTheSameJobsAsAJobSet) {
  const auto all = parse_yaml(rendered("trainjob --ps 2 --chief --namespace ml"));
  ASSERT_EQ(all.size(), 2U);
  const json jobset = jobset_of("--ps 2 --chief");
  EXPECT_EQ(all[0]["kind"], "TrainingRuntime");
  EXPECT_EQ(all[0]["spec"]["template"]["spec"]["replicatedJobs"], jobset["spec"]["replicatedJobs"]);
  EXPECT_EQ(all[1]["kind"], "TrainJob");
  EXPECT_EQ(all[1]["metadata"]["name"], jobset["metadata"]["name"]);
  EXPECT_EQ(all[1]["metadata"]["namespace"], all[0]["metadata"]["namespace"]);
  EXPECT_EQ(all[1]["spec"]["runtimeRef"]["kind"], all[0]["kind"]);
  EXPECT_EQ(all[1]["spec"]["runtimeRef"]["name"], all[0]["metadata"]["name"]);
}

TEST(RenderJobSet, RefusesANameThatMakesHostNamesTooLong) {
  EXPECT_EQ(jobset_tasks(jobset_of("--workers 11 --name " + std::string(51, 'a'))).size(), 12U);
  EXPECT_THAT(render_refusal("jobset --workers 11 --name " + std::string(52, 'a')),
              HasSubstr("has 64 characters, a host name may have at most 63"));
}

}  // namespace
}  // namespace disttf::render
