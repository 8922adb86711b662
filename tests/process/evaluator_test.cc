// The evaluator: it scores a run's model beside the run, without an effect on the run.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/process/process_test.h"
#include "tests/process/raw_peer.h"
#include "tests/process/scripted_run.h"

namespace disttf::test_process {
namespace {

using net::Job;

// Slow enough that there are intermediate checkpoints, and that a task can be killed.
const Words kSlowly = {"--train_steps=150", "--debug_delay_ms=20", "--print_weights_hash"};
const Words kEager = {"--evaluator_secs=0"};
const char* const kOnTheWay = "^After [0-9]+ training step\\(s\\), validation .*test accuracy";

class Evaluator : public ProcessTest {
 protected:
  [[nodiscard]] static std::size_t times_in(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }
  [[nodiscard]] std::string train_dir() const { return (scratch() / "run").string(); }
  [[nodiscard]] std::filesystem::path best_dir() const { return scratch() / "run" / "best"; }

  Process& evaluate_files(const Words& more = {}) {
    return run("evaluator",
               Words{"evaluator", "--train_dir=" + train_dir()} + kEager + data_flags() + more);
  }
  Process& evaluate_ps(const ClusterOnLoopback& cluster, const Words& more = {}) {
    return run("evaluator",
               Words{"evaluator"} + cluster.host_flags() + kEager + data_flags() + more);
  }
  // Starts an evaluator that will see each checkpoint of a run that starts later.
  Process& evaluate_files_from_the_start(const Words& more = {}) {
    Process& evaluator = evaluate_files(more);
    EXPECT_TRUE(says(evaluator, "Evaluates the checkpoints in"));
    return evaluator;
  }
  // Expects that the evaluator reports the same result as the chief.
  static void expect_result_of(Process& chief, Process& evaluator) {
    const std::string pattern = "(" + data_name() + " accuracy: [0-9.]+)";
    EXPECT_EQ(captured(evaluator.standard_output(), pattern),
              captured(chief.standard_output(), pattern));
    EXPECT_EQ(weights_hash_in(evaluator), weights_hash_in(chief));
  }
  // Expects that DIR/best contains exactly one complete checkpoint.
  void expect_one_best() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(best_dir())) {
      names.push_back(entry.path().filename().string());
    }
    ASSERT_EQ(names.size(), 1U);
    Process& verified = run("checkpoint", {"checkpoint", "verify", best_dir().string()});
    EXPECT_TRUE(exits(verified, kExitDone));
  }
};

// ---- the checkpoints of a directory

TEST_F(Evaluator, FollowsTheCheckpointsOfARunAndEndsWithIt) {
  Process& evaluator =
      evaluate_files_from_the_start({"--print_weights_hash", "--print_classes",
                                     "--metrics_file=" + (scratch() / "m.jsonl").string(),
                                     "--metrics_textfile=" + (scratch() / "m.prom").string()});
  Process& job = run(
      "launch", Words{"launch", "--workers=2", "--train_dir=" + train_dir(), "--save_steps=20"} +
                    kSlowly + data_flags());
  EXPECT_TRUE(says(evaluator, kOnTheWay));
  EXPECT_TRUE(exits(job, kExitDone));
  ASSERT_TRUE(exits(evaluator, kExitDone));
  expect_result_of(job, evaluator);
  EXPECT_TRUE(says(evaluator, "^After 150 training step"));
  EXPECT_TRUE(says(evaluator, "class +images +precision +recall"));
  std::ifstream metrics(scratch() / "m.jsonl");
  std::string line;
  std::string last;
  while (std::getline(metrics, line)) {
    EXPECT_NE(line.find(R"("task":"evaluator:0")"), std::string::npos) << line;
    last = line;
  }
  EXPECT_NE(last.find(R"("result":true)"), std::string::npos) << last;
  EXPECT_TRUE(std::filesystem::exists(scratch() / "run" / "evaluator"));  // for TensorBoard
  std::ifstream textfile(scratch() / "m.prom");
  const std::string measured(std::istreambuf_iterator<char>(textfile), {});
  EXPECT_THAT(measured, ::testing::ContainsRegex(
                            "disttf_evaluation_accuracy\\{.*task=\"evaluator:0\".*\\} 0"));
  EXPECT_THAT(measured, ::testing::ContainsRegex("disttf_step\\{.*\\} 150"));
}

// Most checkpoints are saved while the evaluator does not run.
TEST_F(Evaluator, CatchesUpBySkipping) {
  Process& evaluator = evaluate_files_from_the_start({"--print_weights_hash"});
  Process& job = run("launch", Words{"launch", "--workers=1", "--train_dir=" + train_dir(),
                                     "--save_steps=1", "--max_to_keep=2"} +
                                   kSlowly + data_flags());
  EXPECT_TRUE(says(evaluator, kOnTheWay));
  evaluator.send(SIGSTOP);
  const std::size_t before = count_of(evaluator.standard_output(), "After ");
  EXPECT_TRUE(exits(job, kExitDone));
  evaluator.send(SIGCONT);
  ASSERT_TRUE(exits(evaluator, kExitDone));
  // The evaluator scores its current checkpoint and at most two remaining ones; the newest is the
  // result.
  EXPECT_LE(count_of(evaluator.standard_output(), "After "), before + 3);
  EXPECT_GT(count_of(job.standard_error(), "Saved checkpoint"), before + 3);
  expect_result_of(job, evaluator);
}

TEST_F(Evaluator, OneThatIsKilledGoesOnWhenItIsStartedAgain) {
  Process& first = evaluate_files_from_the_start();
  Process& job = run(
      "launch", Words{"launch", "--workers=2", "--train_dir=" + train_dir(), "--save_steps=10"} +
                    kSlowly + data_flags());
  EXPECT_TRUE(says(first, kOnTheWay));
  first.send(SIGKILL);
  EXPECT_TRUE(killed(first, SIGKILL));
  Process& second = evaluate_files({"--print_weights_hash"});
  EXPECT_TRUE(exits(job, kExitDone));
  ASSERT_TRUE(exits(second, kExitDone));
  expect_result_of(job, second);
}

TEST_F(Evaluator, ScoresARunThatIsOver) {
  Process& job = run("launch", Words{"launch", "--workers=2", "--ema=0.9", "--train_steps=40",
                                     "--print_weights_hash", "--train_dir=" + train_dir()} +
                                   data_flags());
  ASSERT_TRUE(exits(job, kExitDone));
  Process& evaluator = evaluate_files({"--print_weights_hash"});
  ASSERT_TRUE(exits(evaluator, kExitDone));
  expect_result_of(job, evaluator);
}

TEST_F(Evaluator, RefusesOtherDataThanTheRuns) {
  const auto put = [this](const std::string& folder, int shift) {
    std::filesystem::create_directories(scratch() / folder);
    const std::string path = (scratch() / folder / "heaps.csv").string();
    std::ofstream file(path);
    file << "x,heap\n";
    for (int row = 0; row < 300; ++row) {
      file << row % 3 * 10 + row % 7 + shift << "," << (row % 3 == 0 ? "near" : "far") << "\n";
    }
    return Words{"--data=" + path, "--label_column=heap",
                 "--data_dir=" + (scratch() / folder / "data").string()};
  };
  Process& job = run("launch", Words{"launch", "--train_dir=" + train_dir(), "--train_steps=20",
                                     "--batch_size=20"} +
                                   put("one", 0));
  ASSERT_TRUE(exits(job, kExitDone));
  Process& evaluator =
      run("evaluator", Words{"evaluator", "--train_dir=" + train_dir()} + put("other", 1));
  EXPECT_TRUE(exits(evaluator, kExitBadData));
  EXPECT_TRUE(says(evaluator,
                   "--data: the run trains on heaps \\(SHA-256 [0-9a-f]{12}\\), this "
                   "task has heaps \\(SHA-256 [0-9a-f]{12}\\)"));
}

TEST_F(Evaluator, ARunThatIsNotThereIsGivenUp) {
  Process& evaluator = evaluate_files({"--start_timeout=1"});
  EXPECT_TRUE(exits(evaluator, kExitLostPeers));
  EXPECT_TRUE(says(evaluator, "waited 1 s for a checkpoint in .*run"));
}

TEST_F(Evaluator, ARunThatDoesNotGoOnIsGivenUp) {
  Process& job = run("launch", Words{"launch", "--train_dir=" + train_dir(), "--save_steps=1"} +
                                   endless() + data_flags());
  Process& evaluator = evaluate_files({"--peer_timeout=2"});
  EXPECT_TRUE(says(evaluator, kOnTheWay));
  job.send(SIGKILL);
  EXPECT_TRUE(exits(evaluator, kExitLostPeers));
  EXPECT_TRUE(says(evaluator, "nothing in .*run has changed for [0-9]+ s"));
}

// Regression: a file time that was never set lies in the year 2174, so that directory was always
// the newest and never changed.
TEST_F(Evaluator, ARunThatGoesOnIsNotGivenUp) {
  Process& job = run("launch", Words{"launch", "--workers=1", "--train_dir=" + train_dir(),
                                     "--save_secs=1", "--max_to_keep=3"} +
                                   endless() + data_flags());
  ASSERT_TRUE(says(job, "Saved checkpoint at global step"));
  Process& evaluator = evaluate_files({"--peer_timeout=4"});
  ASSERT_TRUE(says(evaluator, kOnTheWay));
  const std::size_t before = times_in(job.standard_error(), "Saved checkpoint");
  ASSERT_TRUE(says_times(job, before + 12, "Saved checkpoint"));  // at most one per second
  EXPECT_THAT(evaluator.standard_error(), ::testing::Not(::testing::HasSubstr("has changed for")));
  evaluator.send(SIGTERM);
  EXPECT_TRUE(exits(evaluator, kExitTerminated));
}

// The directory is moved away and another process makes a new one, which the sandbox does not
// cover.
TEST_F(Evaluator, ADirectoryThatIsMadeAnewIsNoErrorForGood) {
  Process& job =
      run("launch", Words{"launch", "--workers=1", "--train_dir=" + train_dir(), "--save_steps=5"} +
                        endless() + data_flags());
  Process& evaluator = evaluate_files({"--peer_timeout=2"});
  ASSERT_TRUE(says(evaluator, kOnTheWay));
  job.send(SIGTERM);
  ASSERT_TRUE(exits(job, kExitTerminated));
  std::filesystem::rename(train_dir(), train_dir() + ".old");
  std::filesystem::create_directory(train_dir());
  EXPECT_TRUE(exits(evaluator, kExitLostPeers));
}

TEST_F(Evaluator, ASignalEndsIt) {
  for (const auto& [signal, code] :
       {std::pair(SIGTERM, kExitTerminated), std::pair(SIGINT, kExitInterrupted)}) {
    Process& evaluator = evaluate_files();
    EXPECT_TRUE(says(evaluator, "Evaluates the checkpoints in"));
    evaluator.send(signal);
    EXPECT_TRUE(exits(evaluator, code, kSoon));
  }
}

TEST_F(Evaluator, WhatItNeedsIsSaidInASentence) {
  struct Case {
    Words words;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {{}, "evaluator"},
      {{"--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2", "--keep_best=loss"},
       "--keep_best: \"loss\" is not allowed without --train_dir"},
      {{"--train_dir=x", "--keep_best=f1"}, "--keep_best: .*f1"},
  };
  for (const Case& each : cases) {
    Process& evaluator = run("evaluator", Words{"evaluator"} + each.words);
    EXPECT_TRUE(exits(evaluator, kExitUsage));
    EXPECT_TRUE(says(evaluator, each.sentence));
  }
}

// ---- the best checkpoint

TEST_F(Evaluator, TheBestCheckpointSurvivesPruning) {
  Process& evaluator = evaluate_files({"--keep_best=loss"});
  // The loss rises in the end, so the best checkpoint is pruned long before.
  Process& job = run("launch", Words{"launch", "--workers=2", "--train_dir=" + train_dir(),
                                     "--save_steps=10", "--max_to_keep=1"} +
                                   kSlowly + data_flags());
  EXPECT_TRUE(exits(job, kExitDone));
  ASSERT_TRUE(exits(evaluator, kExitDone));
  EXPECT_TRUE(says(evaluator, "The best checkpoint by loss is that of step [0-9]+, kept in "));
  expect_one_best();
  Process& asked = run("predict", Words{"predict", best_dir().string()} + data_flags());
  EXPECT_TRUE(exits(asked, kExitDone));
}

TEST_F(Evaluator, TheBestCheckpointSurvivesAKillWhileItIsMarked) {
  Process& job = run(
      "launch", Words{"launch", "--train_dir=" + train_dir(), "--save_steps=1", "--max_to_keep=2"} +
                    endless() + data_flags());
  for (int death = 0; death < 5; ++death) {
    Process& evaluator = evaluate_files({"--keep_best=loss"});
    EXPECT_TRUE(says(evaluator, death == 0 ? "The best checkpoint by loss is"
                                           : "The best checkpoint so far is that of step"));
    EXPECT_TRUE(says(evaluator, kOnTheWay));
    evaluator.send(SIGKILL);
    EXPECT_TRUE(killed(evaluator, SIGKILL));
    Process& verified = run("checkpoint", {"checkpoint", "verify", best_dir().string()});
    EXPECT_TRUE(exits(verified, kExitDone));
  }
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
}

// ---- the parameters on the ps

TEST_F(Evaluator, ScoresWhatThePsHoldWhichKnowsNothingOfIt) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Process& evaluator = evaluate_ps(cluster, {"--print_weights_hash"});
  const Tasks tasks = run_cluster(cluster, kSlowly);
  EXPECT_TRUE(says(evaluator, kOnTheWay));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  ASSERT_TRUE(exits(evaluator, kExitDone));
  expect_result_of(tasks.chief(), evaluator);
  EXPECT_TRUE(says(evaluator, "^After 150 training step"));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2", "--ps=2"} + kSlowly);
}

// As with TensorFlow's evaluator: it is in no list, and has no --train_dir here.
// The first one may have been restarted, and hold nothing yet.
TEST_F(Evaluator, AsksEveryPsForTheConfigurationOfTheRun) {
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 1}};
  for (const std::size_t ps : {0U, 1U}) {
    ASSERT_TRUE(says(run_task(cluster, Job::kPs, ps), "Started server"));
  }
  const RawPeer chief = welcomed(cluster, {.ps = 1});
  publish_and_restore(chief, softmax_run(1), 3, 1, /*ps=*/1, /*ps_count=*/2);
  Process& evaluator = evaluate_ps(cluster);
  EXPECT_TRUE(says(evaluator, "ps 0 .* cannot be reached: it holds nothing of a run"));
}

TEST_F(Evaluator, IsTheOneOfTfConfig) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1, .chief = true});
  Process& evaluator =
      run("evaluator", Words{"train", "--print_weights_hash"} + kEager + data_flags(),
          {{"TF_CONFIG", cluster.tf_config("evaluator", 0)}});
  const Tasks tasks = run_cluster(cluster, kSlowly);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  ASSERT_TRUE(exits(evaluator, kExitDone));
  expect_result_of(tasks.chief(), evaluator);
}

TEST_F(Evaluator, InEveryModeTheResultIsTheChiefs) {
  for (const Words& mode :
       {Words{"--sync_replicas=false"}, Words{"--replicas_to_aggregate=1"},
        Words{"--min_workers=1"}, Words{"--ps_replicas=2"}, Words{"--ema=0.9"}}) {
    const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
    Process& evaluator = evaluate_ps(cluster, {"--print_weights_hash"});
    const Tasks tasks = run_cluster(cluster, kSlowly + mode);
    EXPECT_TRUE(all_exit(tasks.all(), kExitDone)) << mode.front();
    ASSERT_TRUE(exits(evaluator, kExitDone)) << mode.front();
    expect_result_of(tasks.chief(), evaluator);
  }
}

TEST_F(Evaluator, OneThatIsFrozenOrKilledCostsTheRunNothing) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Process& killed_one = evaluate_ps(cluster);
  Process& frozen_one = evaluate_ps(cluster);
  const Tasks tasks = run_cluster(cluster, kSlowly);
  EXPECT_TRUE(says(killed_one, kOnTheWay));
  killed_one.send(SIGKILL);
  EXPECT_TRUE(says(frozen_one, kOnTheWay));
  frozen_one.send(SIGSTOP);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2", "--ps=2"} + kSlowly);
}

TEST_F(Evaluator, GoesOnWhenAPsWasLostAndSetToItsStateAgain) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Process& evaluator = evaluate_ps(cluster, {"--print_weights_hash"});
  Tasks tasks = run_cluster(cluster, kSlowly + Words{"--save_steps=10", "--save_secs=0"});
  EXPECT_TRUE(says(evaluator, kOnTheWay));
  tasks.ps[1]->send(SIGKILL);
  EXPECT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1, kSlowly);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  ASSERT_TRUE(exits(evaluator, kExitDone));
  expect_result_of(tasks.chief(), evaluator);
}

TEST_F(Evaluator, PsThatAreNotThereAreGivenUp) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& early = evaluate_ps(cluster, {"--start_timeout=1"});
  EXPECT_TRUE(exits(early, kExitLostPeers));
  EXPECT_TRUE(says(early, "ps 0 \\(127.0.0.1:[0-9]+\\) cannot be reached: .*, for 1 s"));
  const Tasks tasks = run_cluster(cluster, endless());
  Process& evaluator = evaluate_ps(cluster, {"--peer_timeout=1"});
  EXPECT_TRUE(says(evaluator, kOnTheWay));
  tasks.ps[0]->send(SIGKILL);
  EXPECT_TRUE(exits(evaluator, kExitLostPeers));
}

// ---- launch

TEST_F(Evaluator, OfALaunchSaysWhatItFindsInItsLog) {
  for (const bool has_directory : {true, false}) {
    Words flags = Words{"launch", "--workers=2", "--evaluator"} + kEager + kSlowly + data_flags();
    if (has_directory) {
      flags = flags + Words{"--train_dir=" + train_dir(), "--save_steps=20"};
    }
    Process& job = run("launch", flags);
    ASSERT_TRUE(exits(job, kExitDone));
    EXPECT_TRUE(says(job, R"(\[evaluator:0\] After [0-9]+ training step)"));
    EXPECT_TRUE(says(job, R"(\[evaluator:0\] )" + data_name() + " accuracy: "));
    EXPECT_EQ(count_of(job.standard_output(), data_name() + " accuracy: "), 1U);
  }
}

TEST_F(Evaluator, OfALaunchIsStartedAgainAndItsFailureIsNotTheRuns) {
  Process& job = run("launch", Words{"launch", "--workers=1", "--evaluator", "--max_restarts=1"} +
                                   kEager + endless() + data_flags());
  // Checks that there is one: kill(-1) would signal all processes.
  const auto kill_evaluator = [&job] {
    for (const pid_t child : children_of(job.pid())) {
      const auto words = command_line_of(child);
      if (child > 0 && words.size() > 1 && words[1] == "evaluator") {
        return kill(child, SIGKILL) == 0;
      }
    }
    return false;
  };
  EXPECT_TRUE(says(job, R"(\[evaluator:0\] After)"));
  EXPECT_TRUE(kill_evaluator());
  EXPECT_TRUE(says(job, R"(\[evaluator:0\] was killed by signal 9 .*starting it again \(1 of 1)"));
  EXPECT_TRUE(says_times(job, 2, R"(\[evaluator:0\] .*Evaluates what the ps hold)"));
  EXPECT_TRUE(kill_evaluator());
  EXPECT_TRUE(says(job, R"(\[evaluator:0\] was killed by signal 9 .*the run goes on without it)"));
  EXPECT_TRUE(says_times(job, 100, "training step"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
}

}  // namespace
}  // namespace disttf::test_process
