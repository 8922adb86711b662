// --sharded_checkpoint: each ps writes its range into a directory that all of them share.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using net::Job;

const Words kRun = {"--train_steps=150", "--print_weights_hash"};
// Slow enough that a task can be killed in the middle of it.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};
const Words kSaves = {"--sharded_checkpoint", "--save_steps=10", "--train_dir=train"};

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
  const Tasks killed_ones = run_cluster(cluster, kRun + kSlowly + kSaves);
  ASSERT_TRUE(says_times(killed_ones.chief(), 3, kSaved));
  kill_all(killed_ones);
  expect_whole(2);
  const Tasks tasks = run_cluster(cluster, kRun + kSaves);
  EXPECT_TRUE(says(tasks.chief(), kRestored));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_whole(2);
  EXPECT_THAT(names(), ::testing::Contains("checkpoint-00000150"));
  expect_undisturbed(tasks.trainers);
}

TEST_F(ShardedCheckpoint, RunGoesOnWithAnotherNumberOfPs) {
  const ClusterOnLoopback of_two{{.ps = 2, .workers = 2}};
  const Tasks killed_ones = run_cluster(of_two, kRun + kSlowly + kSaves);
  ASSERT_TRUE(says_times(killed_ones.chief(), 2, kSaved));
  kill_all(killed_ones);
  const ClusterOnLoopback of_three{{.ps = 3, .workers = 2}};
  Tasks tasks = run_cluster(of_three, kRun + kSaves);
  EXPECT_TRUE(says(tasks.chief(), kRestored));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_undisturbed(tasks.trainers);
  // The run has now finished: the other worker may join after the end, and learns that.
  const ClusterOnLoopback of_one{{.ps = 1, .workers = 2}};
  tasks = run_cluster(of_one, kRun + kSaves);
  EXPECT_TRUE(says(tasks.chief(), kRestored));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_undisturbed({&tasks.chief()});
}

// The chief keeps no snapshot in memory: it reads the newest checkpoint.
TEST_F(ShardedCheckpoint, PsThatIsLostGetsTheNewestOne) {
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 2}};
  Tasks tasks = run_cluster(cluster, kRun + kSlowly + kSaves + Words{"--max_to_keep=1"});
  ASSERT_TRUE(says_times(tasks.chief(), 2, kSaved));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1, kSaves);
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
  const Tasks before = run_cluster(cluster, Words{"--train_steps=20"} + kSaves);
  ASSERT_TRUE(all_exit(before.all(), kExitDone));
  const std::vector<std::string> old = names();
  std::ofstream(scratch() / "file") << "no directory";
  Tasks tasks;
  tasks.ps = {&run_task(cluster, Job::kPs, 0, kSaves),
              &run_task(cluster, Job::kPs, 1, {"--train_dir=file/train"})};
  tasks.trainers = {&run_task(cluster, Job::kWorker, 0, kRun + kSaves),
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
  const Words words = kRun + kSlowly + kSaves;
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
  tasks.ps = {&run_task(cluster, Job::kPs, 0, kSaves), &run_task(cluster, Job::kPs, 1)};
  tasks.trainers = {&run_task(cluster, Job::kWorker, 0, kRun + kSaves)};
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
  tasks.ps = {&run_task(cluster, Job::kPs, 0, kSaves),
              &run_task(cluster, Job::kPs, 1, {"--train_dir=other"})};
  tasks.trainers = {&run_task(cluster, Job::kWorker, 0, kRun + kSaves)};
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_TRUE(says(tasks.chief(),
                   "no checkpoint was saved: .*model-00002-of-00002.safetensors is not there"));
  EXPECT_EQ(names("train"), std::vector<std::string>{});
  EXPECT_EQ(names("other").size(), 2U) << "only the files of the last save, tried twice, may stay";
}

TEST_F(ShardedCheckpoint, AsynchronousRunIsSavedToo) {
  const Words flags = {"--sync_replicas=false", "--train_steps=300", "--debug_delay_ms=5"};
  const ClusterOnLoopback cluster{{.ps = 2, .workers = 2}};
  const Tasks tasks = run_cluster(cluster, flags + kSaves);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_whole(2);
  const Tasks again = run_cluster(cluster, flags + kSaves);
  EXPECT_TRUE(says(again.chief(), "Restoring from .*: global step 300"));
  EXPECT_TRUE(all_exit(again.all(), kExitDone));
}

}  // namespace
}  // namespace disttf::test_process
