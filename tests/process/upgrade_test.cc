// Compatibility with older releases: their checkpoints are restored, their tasks are refused with a
// sentence.
//
// tests/process/old_checkpoints documents which release wrote the checkpoints, and their weights.
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/process/process_test.h"
#include "tests/process/raw_peer.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;
using net::Job;

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
