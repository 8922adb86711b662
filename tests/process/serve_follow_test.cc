// `disttf serve` that follows a run: it serves the parameters on the ps, beside the run, without an
// effect on the run.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process/asker.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;
using nlohmann::json;

// Slow enough that there are some intermediate versions, and that a task can be killed.
const Words kLasting = {"--train_steps=150", "--debug_delay_ms=20", "--print_weights_hash"};

const char* const kAsk = "/v1/models/default:predict";

// Returns 784 numbers as a row of CSV.
std::string row(unsigned seed) {
  std::string text;
  for (unsigned i = 0; i < 784; ++i) {
    text += (i == 0 ? "" : ",") + std::to_string((i * seed) % 256);
  }
  return text;
}

std::string question() { return R"({"instances":[[)" + row(3) + "],[" + row(7) + "]]}"; }

class ServeFollow : public ProcessTest {
 protected:
  // A process and its port, once it has one.
  struct Service {
    Process& process;
    std::uint16_t port;
  };
  Service serve(const Words& words, const Variables& environment = {}) {
    Process& process =
        run("serve", Words{"serve"} + words + Words{"--port=0", "--threads=1"}, environment);
    EXPECT_TRUE(says(process, "serving at http://127.0.0.1:[0-9]+/v1/models/default"));
    return {.process = process,
            .port = static_cast<std::uint16_t>(std::stoi(
                captured(process.standard_error(), "serving at http://127.0.0.1:([0-9]+)/")))};
  }
  Service follow(const ClusterOnLoopback& cluster, const Words& more = {}) {
    return serve(cluster.host_flags() + Words{"--follow_secs=0"} + more);
  }
  [[nodiscard]] std::string train_dir() const { return (scratch() / "run").string(); }

  // Returns the version that answers; 0: none.
  static std::uint64_t version(const Service& service) {
    const Asker::Answer answer = Asker(service.port).get("/v2/models/default");
    return answer.status == 200 ? std::stoull(answer.as_json()["versions"][0].get<std::string>())
                                : 0;
  }
  // Waits for that version, or a later one, and returns it.
  static std::uint64_t await_version(const Service& service, std::uint64_t least) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    std::uint64_t now = 0;
    while ((now = version(service)) < least && std::chrono::steady_clock::now() < deadline) {
    }
    EXPECT_GE(now, least) << service.process.report();
    return now;
  }
  // Expects the answers of `predict` with the run's checkpoint, bit-identical.
  void expect_answers_of_the_checkpoint(const Service& service) {
    const std::string file = (scratch() / "rows.csv").string();
    std::ofstream(file) << row(3) << "\n" << row(7) << "\n";
    Process& asked = run("predict", {"predict", train_dir(), file, "--json"});
    ASSERT_TRUE(exits(asked, kExitDone));
    const json told = Asker(service.port).ask(kAsk, question()).as_json()["predictions"];
    std::istringstream lines(asked.standard_output());
    std::string line;
    for (std::size_t row = 0; row < 2; ++row) {
      ASSERT_TRUE(std::getline(lines, line));
      EXPECT_EQ(json::parse(line).at("probabilities").get<std::vector<float>>(),
                told[row].get<std::vector<float>>());
    }
    // A service that reads the checkpoint gives the same answers.
    const Service reader = serve({train_dir()});
    EXPECT_EQ(Asker(reader.port).ask(kAsk, question()).body,
              Asker(service.port).ask(kAsk, question()).body);
  }
};

TEST_F(ServeFollow, EachStateOfTheRunAnswersAndAtLastItsResult) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  const Service service = follow(cluster);
  EXPECT_EQ(Asker(service.port).get("/v2/health/live").status, 200);
  EXPECT_EQ(Asker(service.port).get("/v2/health/ready").status, 503);
  const Asker::Answer early = Asker(service.port).ask(kAsk, question());
  EXPECT_EQ(early.status, 503);
  EXPECT_THAT(early.body, testing::HasSubstr("no model is loaded yet"));
  EXPECT_TRUE(says(service.process, "ps 0 .* cannot be reached: .*; there is no version yet"));

  const Tasks tasks = run_cluster(cluster, kLasting + Words{"--train_dir=" + train_dir()});
  std::uint64_t newest = 0;
  for (int versions = 0; versions < 3; ++versions) {
    newest = await_version(service, newest + 1);
    EXPECT_EQ(Asker(service.port).get("/v2/health/ready").status, 200);
    EXPECT_EQ(Asker(service.port).ask(kAsk, question()).status, 200);
  }
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_EQ(await_version(service, 150), 150U);
  EXPECT_TRUE(says(service.process, "The run has ended; version 150 is still served"));
  EXPECT_EQ(Asker(service.port).get("/v1/page").as_json()["weights"],
            weights_hash_in(tasks.chief()));
  expect_answers_of_the_checkpoint(service);
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2", "--ps=2"} + kLasting);
  service.process.send(SIGTERM);
  EXPECT_TRUE(exits(service.process, kExitTerminated));
}

TEST_F(ServeFollow, ThoseThatAreKilledOrFrozenCostTheRunNothingNorEachOther) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  // The services start before the run, so that none of them comes after its end.
  const Service killed_one = follow(cluster);
  const Service frozen_one = follow(cluster);
  const Service other = follow(cluster, {"--keep_versions=2"});
  const Tasks tasks = run_cluster(cluster, kLasting);
  Process& evaluator =
      run("evaluator", Words{"evaluator", "--evaluator_secs=0", "--print_weights_hash"} +
                           cluster.host_flags() + data_flags());
  await_version(killed_one, 1);
  await_version(frozen_one, 1);
  killed_one.process.send(SIGKILL);
  frozen_one.process.send(SIGSTOP);
  await_version(other, 1);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  ASSERT_TRUE(exits(evaluator, kExitDone));
  EXPECT_EQ(weights_hash_in(evaluator), weights_hash_in(tasks.chief()));
  EXPECT_EQ(await_version(other, 150), 150U);
  EXPECT_EQ(Asker(other.port).get("/v2/models/default").as_json()["versions"].size(), 2U);
  EXPECT_EQ(Asker(other.port).get("/v1/page").as_json()["weights"], weights_hash_in(tasks.chief()));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2", "--ps=2"} + kLasting);
}

TEST_F(ServeFollow, AnswersWhileAPsIsAwayAndGoesOnWhenItIsBack) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  const Service service = follow(cluster, {"--heartbeat_timeout=2"});
  Tasks tasks = run_cluster(cluster, kLasting + Words{"--save_steps=10", "--save_secs=0"});
  await_version(service, 1);
  tasks.ps[1]->send(SIGKILL);
  EXPECT_TRUE(killed(*tasks.ps[1], SIGKILL));
  EXPECT_TRUE(
      says(service.process, "ps 1 .* cannot be reached: .*; version [0-9]+ is still served"));
  EXPECT_EQ(Asker(service.port).get("/v2/health/ready").status, 200);
  EXPECT_EQ(Asker(service.port).ask(kAsk, question()).status, 200);
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1, kLasting);
  EXPECT_TRUE(says(service.process, "The ps of the run are reachable again"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_EQ(await_version(service, 150), 150U);
  EXPECT_EQ(Asker(service.port).get("/v1/page").as_json()["weights"],
            weights_hash_in(tasks.chief()));
}

TEST_F(ServeFollow, ARunThatIsKilledAndBegunAnewIsFollowedAgain) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  const Service service = follow(cluster);
  const Tasks first = run_cluster(cluster, endless());
  const std::uint64_t before = await_version(service, 1);
  for (Process* const each : first.all()) {
    each->send(SIGKILL);
    EXPECT_TRUE(killed(*each, SIGKILL));
  }
  EXPECT_TRUE(says(service.process, "cannot be reached: .*; version [0-9]+ is still served"));
  EXPECT_GE(version(service), before);
  // Another run, with other settings; long enough that the service polls it several times, even on
  // a busy machine.
  const Tasks second = run_cluster(cluster, {"--train_steps=150", "--debug_delay_ms=60",
                                             "--print_weights_hash", "--learning_rate=0.02"});
  EXPECT_TRUE(all_exit(second.all(), kExitDone));
  EXPECT_TRUE(says(service.process, "The run has ended; version 150 is still served"));
  EXPECT_EQ(Asker(service.port).get("/v1/page").as_json()["weights"],
            weights_hash_in(second.chief()));
}

TEST_F(ServeFollow, FollowsARunWithReplicasAndAverages) {
  for (const Words& mode : {Words{"--ps_replicas=2"}, Words{"--ema=0.9"}}) {
    const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
    const Service service = follow(cluster);
    const Tasks tasks = run_cluster(cluster, kLasting + mode);
    EXPECT_TRUE(all_exit(tasks.all(), kExitDone)) << mode.front();
    EXPECT_EQ(await_version(service, 150), 150U);
    EXPECT_EQ(Asker(service.port).get("/v1/page").as_json()["weights"],
              weights_hash_in(tasks.chief()));
  }
}

TEST_F(ServeFollow, TheEvaluatorOfTfConfigMayBeAService) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1, .chief = true});
  const Service service =
      serve({"--follow_secs=0"}, {{"TF_CONFIG", cluster.tf_config("evaluator", 0)}});
  const Tasks tasks = run_cluster(cluster, kLasting);
  await_version(service, 1);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_EQ(await_version(service, 150), 150U);
}

// The launch's list of its tasks, and their secret, are sufficient.
TEST_F(ServeFollow, ALaunchTellsWhereItsPsAre) {
  const std::string control = (scratch() / "control").string();
  Process& job = run("launch", Words{"launch", "--workers=2", "--ps=2", "--control=" + control} +
                                   endless() + data_flags());
  EXPECT_TRUE(says(job, "training step"));
  Process& endpoints = run("endpoints", {"endpoints", "--control=" + control});
  ASSERT_TRUE(exits(endpoints, kExitDone));
  const std::string addresses = endpoints.standard_output();
  const Service service = serve({"--ps_hosts=" + captured(addresses, "ps +([0-9.:,]+)"),
                                 "--worker_hosts=" + captured(addresses, "worker +([0-9.:,]+)"),
                                 "--secret_file=" + captured(addresses, "secret_file +(\\S+)")});
  await_version(service, 1);
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
}

TEST_F(ServeFollow, ARunOfOtherTasksIsRefused) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  const Tasks tasks = run_cluster(cluster, endless());
  EXPECT_TRUE(says(tasks.chief(), "training step"));
  Process& service = run("serve", {"serve", "--port=0", "--worker_hosts=127.0.0.1:1",
                                   "--ps_hosts=" + cluster.list(Job::kPs)});
  EXPECT_TRUE(exits(service, kExitUsage));
}

TEST_F(ServeFollow, WhatItNeedsIsSaidInASentence) {
  struct Case {
    Words words;
    std::string sentence;
  };
  const Words hosts = {"--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2"};
  const std::vector<Case> cases = {
      {Words{"run"} + hosts,
       "--ps_hosts: is for following a run, but \"run\" is a directory; give one of them"},
      {{"run", "--follow_secs=1"}, "--follow_secs: is for following a run"},
      {{"--ps_hosts=127.0.0.1:1"}, "--worker_hosts"},
      {{"--worker_hosts=127.0.0.1:1"}, "--ps_hosts"},
      {hosts + Words{"--follow_secs=-1"}, "--follow_secs: "},
      {hosts + Words{"--train_dir=run"}, "--train_dir"},
      {{"--port=0"}, "the directory is missing"},
  };
  for (const Case& each : cases) {
    Process& refused = run("refused", Words{"serve"} + each.words);
    EXPECT_TRUE(exits(refused, kExitUsage));
    EXPECT_TRUE(says(refused, each.sentence));
  }
}

}  // namespace
}  // namespace disttf::test_process
