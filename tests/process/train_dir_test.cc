// Two runs with the same --train_dir by mistake: the second one is refused. A killed run, or a
// restarted chief, does not block the next one.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kSaves = {"--train_dir=run", "--save_steps=5"};

class RunLock : public ProcessTest {
 protected:
  Process& launch(const std::string& name, const Words& more) {
    return run(name, Words{"launch", "--workers=1"} + kSaves + data_flags() + more);
  }
  [[nodiscard]] std::filesystem::path lock() const { return scratch() / "run" / "run.lock"; }
};

TEST_F(RunLock, ASecondRunInADirectoryIsRefused) {
  Process& first = launch("first", endless());
  ASSERT_TRUE(says(first, "Saved checkpoint at global step"));
  const auto chief = pid_of_task(first.pid(), "worker:0");
  ASSERT_TRUE(chief);
  Process& second = launch("second", endless());
  EXPECT_TRUE(exits(second, kExitUsage));
  EXPECT_TRUE(says(second, "--train_dir: \"run\" is in use by another run, process " +
                               std::to_string(*chief) + " on host .*; end that run, or give"));
  EXPECT_TRUE(std::filesystem::exists(lock()));
  first.send(SIGTERM);
  EXPECT_TRUE(exits(first, kExitTerminated));
  EXPECT_FALSE(std::filesystem::exists(lock()));
  Process& verify = run("verify", {"checkpoint", "verify", "run"});
  EXPECT_TRUE(exits(verify, kExitDone));
}

TEST_F(RunLock, ARunThatWasKilledIsGoneOnWithAtOnce) {
  Process& first = launch("first", endless());
  ASSERT_TRUE(says(first, "Saved checkpoint at global step"));
  const std::vector<pid_t> tasks = children_of(first.pid());
  first.send(SIGKILL);
  ASSERT_TRUE(killed(first, SIGKILL));
  ASSERT_TRUE(wait_until_gone(tasks));
  EXPECT_TRUE(std::filesystem::exists(lock()));
  Process& second = launch("second", {"--train_steps=20"});
  EXPECT_TRUE(exits(second, kExitDone));
  EXPECT_THAT(second.standard_error(), ::testing::Not(::testing::HasSubstr("waiting up to")));
  EXPECT_FALSE(std::filesystem::exists(lock()));
}

// Like an orchestrator, with the same addresses.
TEST_F(RunLock, AChiefThatIsStartedAgainHasItAtOnce) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  const Words words = kSaves + endless();
  Tasks tasks = run_cluster(cluster, words);
  ASSERT_TRUE(says(tasks.chief(), "Saved checkpoint at global step"));
  tasks.chief().send(SIGKILL);
  ASSERT_TRUE(killed(tasks.chief(), SIGKILL));
  Process& chief = run_task(cluster, Job::kWorker, 0, words);
  EXPECT_TRUE(says(chief, "Saved checkpoint at global step"));
  EXPECT_THAT(chief.standard_error(), ::testing::Not(::testing::HasSubstr("waiting up to")));
}

// As after a minute in which it was suspended. The next renewal, which ends it, is up to 15 s away.
TEST_F(RunLock, AChiefThatHasLostItSavesNothingMore) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run_task(cluster, Job::kPs, 0, endless());
  Process& chief = run_task(cluster, Job::kWorker, 0, kSaves + endless());
  ASSERT_TRUE(says(chief, "Saved checkpoint at global step"));
  std::ofstream(scratch() / "run" / "another")
      << R"({"disttf_lock": 1, "run": "b", "process": "c", "host": "elsewhere", "pid": 7})"
      << "\n";
  std::filesystem::rename(scratch() / "run" / "another", lock());
  EXPECT_TRUE(says(chief,
                   "no checkpoint was saved: .*\"run\" is in use by another run, process 7 "
                   "on host \"elsewhere\""));
  EXPECT_TRUE(exits(chief, kExitUsage));
  const std::string log = chief.standard_error();
  EXPECT_EQ(log.find("Saved checkpoint", log.find("no checkpoint was saved")), std::string::npos);
  ps.send(SIGTERM);
}

TEST_F(RunLock, ReadersNeedNone) {
  Process& first = launch("first", endless());
  ASSERT_TRUE(says(first, "Saved checkpoint at global step"));
  Process& predict = run("predict", Words{"predict", "run"} + data_flags());
  EXPECT_TRUE(exits(predict, kExitDone));
  Process& evaluator =
      run("evaluator", Words{"evaluator", "--train_dir=run", "--evaluator_secs=0"} + data_flags());
  EXPECT_TRUE(says(evaluator, "^After [0-9]+ training step"));
}

// --sharded_checkpoint: each ps writes its range into a directory that all of them share.

namespace fs = std::filesystem;

const Words kRun = {"--train_steps=150", "--print_weights_hash"};
// Slow enough that a task can be killed in the middle of it.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};
const Words kShards = {"--sharded_checkpoint", "--save_steps=10", "--train_dir=train"};

class ShardedCheckpoint : public ProcessTest {
 protected:
  // Returns the directories of checkpoints, complete or not, in order.
  [[nodiscard]] std::vector<std::string> names(const std::string& directory = "train") const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(scratch() / directory)) {
      // Records and TensorBoard's files lie beside them.
      if (entry.path().filename().string().find("checkpoint") != std::string::npos) {
        names.push_back(entry.path().filename().string());
      }
    }
    std::ranges::sort(names);
    return names;
  }

  // Kills all tasks at once, in any state.
  void kill_all(const Tasks& tasks) {
    for (Process* process : tasks.all()) {
      process->send(SIGKILL);
    }
    for (Process* process : tasks.all()) {
      ASSERT_TRUE(killed(*process, SIGKILL));
    }
  }

  // Expects that every checkpoint is complete, and has that many files.
  void expect_whole(std::size_t files) {
    Process& verify = run("verify", {"checkpoint", "verify", "train"});
    EXPECT_TRUE(exits(verify, kExitDone));
    std::size_t checkpoints = 0;
    for (const std::string& name : names()) {
      if (name.find("partial") == std::string::npos) {
        ++checkpoints;
        const fs::directory_iterator entries(scratch() / "train" / name);
        EXPECT_EQ(std::distance(begin(entries), end(entries)), files + 1) << name;
      }
    }
    EXPECT_GT(checkpoints, 0U);
  }

  void expect_undisturbed(const std::vector<Process*>& trainers) {
    expect_weights_of_launch(trainers, Words{"--workers=2"} + kRun);
  }

  static constexpr const char* kSaved = "Saved checkpoint at global step [1-9][0-9]* in train";
  static constexpr const char* kRestored = "Restoring from train/checkpoint-[0-9-]*: global step ";
};

TEST_F(ShardedCheckpoint, RunThatIsKilledWholeGoesOnFromIt) {
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 2}};
  const Tasks killed_ones = run_cluster(cluster, kRun + kSlowly + kShards);
  ASSERT_TRUE(says_times(killed_ones.chief(), 3, kSaved));
  kill_all(killed_ones);
  expect_whole(2);
  const Tasks tasks = run_cluster(cluster, kRun + kShards);
  EXPECT_TRUE(says(tasks.chief(), kRestored));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_whole(2);
  EXPECT_THAT(names(), ::testing::Contains("checkpoint-00000150"));
  expect_undisturbed(tasks.trainers);
}

TEST_F(ShardedCheckpoint, RunGoesOnWithAnotherNumberOfPs) {
  const ClusterOnLoopback of_two{{.ps = 2, .workers = 2}};
  const Tasks killed_ones = run_cluster(of_two, kRun + kSlowly + kShards);
  ASSERT_TRUE(says_times(killed_ones.chief(), 2, kSaved));
  kill_all(killed_ones);
  const ClusterOnLoopback of_three{{.ps = 3, .workers = 2}};
  Tasks tasks = run_cluster(of_three, kRun + kShards);
  EXPECT_TRUE(says(tasks.chief(), kRestored));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_undisturbed(tasks.trainers);
  // The run has now finished: the other worker may join after the end, and learns that.
  const ClusterOnLoopback of_one{{.ps = 1, .workers = 2}};
  tasks = run_cluster(of_one, kRun + kShards);
  EXPECT_TRUE(says(tasks.chief(), kRestored));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_undisturbed({&tasks.chief()});
}

// The chief keeps no snapshot in memory: it reads the newest checkpoint.
TEST_F(ShardedCheckpoint, PsThatIsLostGetsTheNewestOne) {
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 2}};
  Tasks tasks = run_cluster(cluster, kRun + kSlowly + kShards + Words{"--max_to_keep=1"});
  ASSERT_TRUE(says_times(tasks.chief(), 2, kSaved));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1, kShards);
  EXPECT_TRUE(says(tasks.chief(), kRestored));
  EXPECT_TRUE(says(tasks.chief(), "The run goes on from global step [1-9][0-9]*, generation 2"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_whole(2);
  EXPECT_THAT(names(), ::testing::ElementsAre("checkpoint-00000150"));
  expect_undisturbed(tasks.trainers);
}

// A directory below a file: root cannot write there either.
TEST_F(ShardedCheckpoint, PsThatCannotWriteOnlyCostsAWarning) {
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 2}};
  const Tasks before = run_cluster(cluster, Words{"--train_steps=20"} + kShards);
  ASSERT_TRUE(all_exit(before.all(), kExitDone));
  const std::vector<std::string> old = names();
  std::ofstream(scratch() / "file") << "no directory";
  Tasks tasks;
  tasks.ps = {&run_task(cluster, Job::kPs, 0, kShards),
              &run_task(cluster, Job::kPs, 1, {"--train_dir=file/train"})};
  tasks.trainers = {&run_task(cluster, Job::kWorker, 0, kRun + kShards),
                    &run_task(cluster, Job::kWorker, 1)};
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_TRUE(says(tasks.chief(),
                   "no checkpoint was saved: ps 1 \\(127.0.0.1:[0-9]*\\) could not write its "
                   "range: cannot create file/train/checkpoint-[0-9]*.partial-[0-9a-f]*: "));
  EXPECT_TRUE(says(tasks.chief(), "After 150 training step"));
  EXPECT_EQ(names(), old) << "other files were left behind";
  expect_whole(2);
}

// The sandbox does not cover a directory that is made anew. Like a failing disk, it costs a
// warning.
TEST_F(ShardedCheckpoint, DirectoryThatIsGoneWhenAPsIsLostCostsAWarning) {
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 2}};
  const Words words = kRun + kSlowly + kShards;
  Tasks tasks = run_cluster(cluster, words);
  ASSERT_TRUE(says(tasks.chief(), "Saved checkpoint at global step"));
  fs::rename(scratch() / "train", scratch() / "gone");
  fs::create_directory(scratch() / "train");
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1, words);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_undisturbed(tasks.trainers);
}

TEST_F(ShardedCheckpoint, PsWithoutADirectoryIsToldOf) {
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 1}};
  Tasks tasks;
  tasks.ps = {&run_task(cluster, Job::kPs, 0, kShards), &run_task(cluster, Job::kPs, 1)};
  tasks.trainers = {&run_task(cluster, Job::kWorker, 0, kRun + kShards)};
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_TRUE(says(tasks.chief(),
                   "no checkpoint was saved: ps 1 \\(.*\\) could not write its range: it was "
                   "started without --train_dir"));
  EXPECT_EQ(names(), std::vector<std::string>{});
}

// Two disks with the same path: the ps's report is not enough, the chief must see the file.
TEST_F(ShardedCheckpoint, DirectoryThatIsNotSharedIsFoundOut) {
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 1}};
  Tasks tasks;
  tasks.ps = {&run_task(cluster, Job::kPs, 0, kShards),
              &run_task(cluster, Job::kPs, 1, {"--train_dir=other"})};
  tasks.trainers = {&run_task(cluster, Job::kWorker, 0, kRun + kShards)};
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_TRUE(says(tasks.chief(),
                   "no checkpoint was saved: .*model-00002-of-00002.safetensors is not there"));
  EXPECT_EQ(names("train"), std::vector<std::string>{});
  EXPECT_EQ(names("other").size(), 2U) << "only the files of the last save, tried twice, may stay";
}

TEST_F(ShardedCheckpoint, AsynchronousRunIsSavedToo) {
  const Words flags = {"--sync_replicas=false", "--train_steps=300", "--debug_delay_ms=5"};
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 2}};
  const Tasks tasks = run_cluster(cluster, flags + kShards);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_whole(2);
  const Tasks again = run_cluster(cluster, flags + kShards);
  EXPECT_TRUE(says(again.chief(), "Restoring from .*: global step 300"));
  EXPECT_TRUE(all_exit(again.all(), kExitDone));
}

}  // namespace
}  // namespace disttf::test_process
