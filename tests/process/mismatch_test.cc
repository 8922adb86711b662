// Tasks with contradicting settings: the task with the wrong one prints a sentence and exits with
// the documented code, and so do the tasks that wait for it.
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/process/process_test.h"
#include "tests/process/raw_peer.h"

namespace disttf::test_process {
namespace {

using net::Job;

// For a task that must time out: the task that it refuses has to connect within that time.
const char* const kWaitsInVain = "--start_timeout=15";

class Mismatch : public ProcessTest {
 protected:
  // Starts a task with its own lists.
  Process& run_with(Job job, std::size_t index, const std::string& ps_hosts,
                    const std::string& worker_hosts) {
    const std::string name(net::job_name(job));
    return run(name + " " + std::to_string(index),
               Words{name, "--task_index=" + std::to_string(index), "--ps_hosts=" + ps_hosts,
                     "--worker_hosts=" + worker_hosts, kWaitsInVain} +
                   data_flags());
  }

  const ClusterOnLoopback cluster_{{.ps = 1, .workers = 2}};
  const std::string ps_ = cluster_.address(Job::kPs, 0);
  const std::string worker0_ = cluster_.address(Job::kWorker, 0);
  const std::string worker1_ = cluster_.address(Job::kWorker, 1);
};

TEST_F(Mismatch, OfHostListsIsLearntByBothSides) {
  Process& ps = run_task(cluster_, Job::kPs, 0, {kWaitsInVain});
  Process& worker = run_with(Job::kWorker, 1, ps_, worker1_ + "," + worker0_);
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_TRUE(says(worker,
                   "refused by ps 0 .*: your address lists \\(cluster [0-9a-f]{8}\\) "
                   "differ from those of ps 0"));
  EXPECT_TRUE(says(ps, "refused worker 1 .*: your address lists"));
  EXPECT_TRUE(exits(ps, kExitLostPeers));
}

TEST_F(Mismatch, PsHostsThatLeadToAWorker) {
  Process& worker1 = run_task(cluster_, Job::kWorker, 1, {kWaitsInVain});
  ASSERT_TRUE(says(worker1, "Started server"));
  Process& worker0 = run_with(Job::kWorker, 0, worker1_, worker0_);
  EXPECT_TRUE(exits(worker0, kExitUsage));
  EXPECT_TRUE(says(worker0, "this is worker 1 .*, not ps 0"));
  EXPECT_TRUE(says(worker1, "refused worker 0 .*: this is worker 1"));
  EXPECT_TRUE(exits(worker1, kExitLostPeers));
}

TEST_F(Mismatch, PsPortThatIsTaken) {
  const ReservedPort taken;
  ASSERT_EQ(listen(taken.socket(), 1), 0);
  const std::string port = std::to_string(taken.number());
  Process& ps = run_with(Job::kPs, 0, "127.0.0.1:" + port, worker0_);
  EXPECT_TRUE(exits(ps, kExitCannotListen));
  EXPECT_TRUE(says(ps, "ps 0 \\(127.0.0.1:" + port + "\\) cannot listen on 127.0.0.1 port " + port +
                           ": Address already in use"));
}

// The port of a killed task may be in use for a moment after an engine has started the next
// process.
class PortInUse : public ProcessTest {
 protected:
  // Runs a program on a port on which another process listens, and then frees the port. The
  // program's message `then` is the only sign that it has the port.
  void expect_patience(const std::string& flag, const Words& words, const std::string& then) {
    std::optional<ReservedPort> taken(std::in_place);
    ASSERT_EQ(listen(taken->socket(), 1), 0);
    const std::string port = std::to_string(taken->number());
    Process& waits = run(flag, words + Words{"--" + flag + "=" + port});
    EXPECT_TRUE(says(waits, "--" + flag + " " + port + " is in use; if that is a process"));
    taken.reset();
    EXPECT_TRUE(says(waits, then + ".*127.0.0.1:" + port));
  }
  const Words launch_ = Words{"launch", "--train_steps=20"} + data_flags();
};

TEST_F(PortInUse, OfMetricsIsWaitedFor) {
  expect_patience("metrics_port", launch_, "metrics at http://");
}

TEST_F(PortInUse, OfThePageIsWaitedFor) {
  expect_patience("page_port", launch_ + Words{"--page"}, "http://");
}

TEST_F(PortInUse, OfTheControlAddressIsWaitedFor) {
  expect_patience("control_port", launch_, "managed at http://");
}

TEST_F(PortInUse, OfAServiceIsWaitedFor) {
  Process& trains = run("launch", launch_ + Words{"--train_dir=run"});
  ASSERT_TRUE(exits(trains, kExitDone));
  expect_patience("port", {"serve", "run"}, "http://");
}

// A task that is asked to exit while it waits exits like later.
TEST_F(PortInUse, WhoIsToldToEndMeanwhileEnds) {
  const ReservedPort taken;
  ASSERT_EQ(listen(taken.socket(), 1), 0);
  const std::string own = "127.0.0.1:" + std::to_string(taken.number());
  Process& ps =
      run("ps", {"ps", "--task_index=0", "--ps_hosts=" + own, "--worker_hosts=127.0.0.1:1"});
  ASSERT_TRUE(says(ps, own + " is in use"));
  ps.send(SIGTERM);
  EXPECT_TRUE(exits(ps, kExitTerminated));
}

TEST_F(Mismatch, PsPortThatIsFreedMeanwhile) {
  std::optional<ReservedPort> taken(std::in_place);
  ASSERT_EQ(listen(taken->socket(), 1), 0);
  const std::string port = std::to_string(taken->number());
  Process& ps = run_with(Job::kPs, 0, "127.0.0.1:" + port, worker0_);
  EXPECT_TRUE(says(ps, "127.0.0.1:" + port + " is in use; if that is a process which is ending"));
  taken.reset();
  EXPECT_TRUE(says(ps, "Started server with target: tcp://127.0.0.1:" + port));
}

TEST_F(Mismatch, WorkerWithAFlagThatContradictsTheChiefs) {
  const Words patience = {"--worker_timeout=1", "--peer_timeout=1"};
  Process& ps = run_task(cluster_, Job::kPs, 0, patience);
  Process& chief = run_task(cluster_, Job::kWorker, 0, patience + Words{"--batch_size=50"});
  Process& worker = run_task(cluster_, Job::kWorker, 1, patience + Words{"--batch_size=60"});
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_TRUE(says(worker, "--batch_size: .*60.*50"));
  EXPECT_TRUE(all_exit({&ps, &chief}, kExitLostPeers));
}

TEST_F(Mismatch, WorkerThatLeavesTheChiefsFlagsOutTakesThem) {
  Process& ps = run_task(cluster_, Job::kPs, 0);
  Process& chief = run_task(cluster_, Job::kWorker, 0,
                            {"--batch_size=50", "--train_steps=20", "--model=softmax"});
  Process& worker = run_task(cluster_, Job::kWorker, 1);
  EXPECT_TRUE(all_exit({&ps, &chief, &worker}, kExitDone));
  EXPECT_EQ(chief.standard_output(), worker.standard_output());
}

TEST_F(Mismatch, WorkerWithOtherDataThanTheChiefs) {
  if (!has_mnist()) {
    GTEST_SKIP() << "needs the real MNIST in " << mnist_directory();
  }
  const Words patience = {"--worker_timeout=1", "--peer_timeout=1"};
  Process& ps = run_task(cluster_, Job::kPs, 0, patience);
  Process& chief = run_task(cluster_, Job::kWorker, 0, patience);
  Process& worker = run("worker 1", Words{"worker", "--task_index=1"} + cluster_.host_flags() +
                                        Words{data_dir_flag(), "--dataset=digits"});
  EXPECT_TRUE(exits(worker, kExitBadData));
  EXPECT_TRUE(says(worker,
                   "--dataset: the chief trains on MNIST \\(SHA-256 .*\\), this task has "
                   "Digits \\(SHA-256"));
  EXPECT_TRUE(all_exit({&ps, &chief}, kExitLostPeers));
}

// With --dataset auto a worker can use the data set that the chief fell back to.
TEST_F(Mismatch, WorkerWithMnistFollowsAChiefOnDigits) {
  if (!has_mnist()) {
    GTEST_SKIP() << "needs the real MNIST in " << mnist_directory();
  }
  const Words run_flags = {data_dir_flag(), "--train_steps=5"};
  Process& ps = run_task(cluster_, Job::kPs, 0);
  Process& chief = run("worker 0", Words{"worker", "--task_index=0"} + cluster_.host_flags() +
                                       run_flags + Words{"--dataset=digits"});
  Process& worker = run("worker 1", Words{"worker", "--task_index=1"} + cluster_.host_flags() +
                                        run_flags + Words{"--dataset=auto"});
  EXPECT_TRUE(all_exit({&ps, &chief, &worker}, kExitDone));
  EXPECT_TRUE(says(worker, "^Digits accuracy: "));
}

// At this rate the first update already gives weights whose products exceed any float.
TEST_F(Mismatch, TrainingThatDivergesEndsEveryTask) {
  const Words flags = {"--model=softmax", "--optimizer=sgd", "--learning_rate=3e38",
                       "--worker_timeout=1", "--peer_timeout=1"};
  const Tasks tasks = run_cluster(cluster_, flags);
  EXPECT_TRUE(all_exit(tasks.trainers, kExitError));
  EXPECT_TRUE(exits(*tasks.ps[0], kExitLostPeers));
  EXPECT_TRUE(says(tasks.chief(), "the loss became .* at step [0-9]+: training has diverged"));
}

// No intermediate loss is infinite: every hidden unit becomes inactive, and the model always
// predicts one class. All steps are made, so the ps exits as after any run.
TEST_F(Mismatch, TrainingThatDivergesToFiniteWeightsHasNoResult) {
  const Tasks tasks = run_cluster(
      cluster_, {"--optimizer=sgd", "--learning_rate=1000", "--learning_rate_decay=none",
                 "--train_steps=100", "--print_weights_hash"});
  EXPECT_TRUE(all_exit(tasks.trainers, kExitError));
  EXPECT_TRUE(exits(*tasks.ps[0], kExitDone));
  for (Process* trainer : tasks.trainers) {
    EXPECT_TRUE(says(*trainer,
                     "the validation cross entropy is .* after step 100, that of guessing 2\\.303, "
                     "and the root mean square of the weights is .*: "
                     "training has diverged; a lower --learning_rate than 1000 may help"));
    EXPECT_EQ(trainer->standard_output(), "");
  }
}

// Compatibility with older releases: their checkpoints are restored, their tasks are refused with a
// sentence.
//
// tests/process/old_checkpoints documents which release wrote the checkpoints, and their weights.

namespace fs = std::filesystem;

struct OldRun {
  const char* folder;
  Words flags;  // its flags
};
void PrintTo(const OldRun& run, std::ostream* out) { *out << run.folder; }

class OldCheckpoint : public ProcessTest, public ::testing::WithParamInterface<OldRun> {
 protected:
  void SetUp() override {
    const fs::path kept = source_directory() / "tests/process/old_checkpoints" / GetParam().folder;
    fs::copy(kept / "train", scratch() / "train", fs::copy_options::recursive);
    std::getline(std::ifstream(kept / "weights"), weights_);
  }

  // A run that resumes from it, up to `steps`.
  Process& go_on(const std::string& steps) {
    return run("launch",
               Words{"launch", "--dataset=digits", "--data_dir=" + test_data_directory().string(),
                     "--train_dir=train", "--print_weights_hash", "--train_steps=" + steps} +
                   GetParam().flags);
  }

  std::string weights_;  // the hash that the old release printed
};

TEST_P(OldCheckpoint, IsWhole) {
  Process& verify = run("verify", {"checkpoint", "verify", "train"});
  EXPECT_TRUE(exits(verify, kExitDone));
}

TEST_P(OldCheckpoint, HasTheWeightsThatWereSaved) {
  Process& launch = go_on("20");
  ASSERT_TRUE(exits(launch, kExitDone));
  EXPECT_TRUE(says(launch, "Restoring from train/checkpoint-00000020: global step 20"));
  EXPECT_EQ(weights_hash_in(launch), weights_);
}

TEST_P(OldCheckpoint, IsGoneOnFrom) {
  Process& launch = go_on("30");
  ASSERT_TRUE(exits(launch, kExitDone));
  EXPECT_NE(weights_hash_in(launch), weights_);
  EXPECT_TRUE(fs::exists(scratch() / "train/checkpoint-00000030"));
}

INSTANTIATE_TEST_SUITE_P(
    Upgrade, OldCheckpoint,
    ::testing::Values(OldRun{.folder = "adam", .flags = {"--hidden_units=1", "--optimizer=adam"}},
                      OldRun{.folder = "momentum_of_two_ps",
                             .flags = {"--hidden_units=2", "--optimizer=momentum", "--ps=2",
                                       "--sharded_checkpoint"}}),
    [](const auto& each) { return std::string(each.param.folder); });

class Upgrade : public ProcessTest {};

// The first frame of a worker of the previous version: its HELLO was 24 bytes shorter.
TEST_F(Upgrade, WorkerOfThePreviousWireVersionIsRefusedWithASentence) {
  constexpr std::size_t kVersionAt = 4;
  const ClusterOnLoopback cluster{{.ps = 1, .workers = 1}};
  Process& ps = run_task(cluster, Job::kPs, 0);
  ASSERT_TRUE(says(ps, "Started server"));
  Bytes hello = hello_frame({.cluster = net::hash_of(cluster.tasks()),
                             .from = {.job = Job::kWorker, .index = 0},
                             .to = {.job = Job::kPs, .index = 0},
                             .purpose = net::ChannelPurpose::kStep,
                             .incarnation = 77});
  ASSERT_EQ(hello[kVersionAt], std::byte{net::kWireVersion});
  hello[kVersionAt] = std::byte{net::kWireVersion - 1};
  hello.resize(hello.size() - 24);
  const RawPeer peer(cluster.tasks().ps.front().port);
  peer.write(hello);
  bool timed_out = false;
  const auto refusal = refusal_in(peer.read_to_end(kPatience, timed_out));
  EXPECT_FALSE(timed_out);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->exit_code, kExitUsage);
  EXPECT_THAT(refusal->sentence,
              ::testing::HasSubstr("speaks wire version " + std::to_string(net::kWireVersion) +
                                   " and no other: run the same release of disttf everywhere"));
}

}  // namespace
}  // namespace disttf::test_process
