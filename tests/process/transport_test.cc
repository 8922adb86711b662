// The transport of tensors affects only the speed.
#include <filesystem>

#include "data/file.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=150", "--print_weights_hash", "--log_level=debug"};

class Transport : public ProcessTest {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch",
               Words{"launch", "--ps=2", "--workers=3"} + arguments + kRun + data_flags());
  }
};

TEST_F(Transport, SharedMemoryAndTcpLeadToBitIdenticalResults) {
  Process& shared = launch({"--transport=shm"});
  Process& tcp = launch({"--transport=tcp"});
  ASSERT_TRUE(all_exit({&shared, &tcp}, kExitDone));
  EXPECT_EQ(weights_hash_in(shared), weights_hash_in(tcp));
  EXPECT_EQ(count_of(shared.standard_error(), "shares memory with 2 of 2 ps"), 3U);
  EXPECT_EQ(count_of(tcp.standard_error(), "shares memory"), 0U);
}

TEST_F(Transport, IsSharedMemoryOnOneMachineUnlessToldOtherwise) {
  Process& job = launch({});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_EQ(count_of(job.standard_error(), "shares memory with 2 of 2 ps"), 3U);
}

TEST_F(Transport, ElasticRunsTakeSharedMemoryToo) {
  const Words elastic = {"--min_workers=1", "--micro_batches=5"};
  Process& shared = launch(elastic + Words{"--transport=shm"});
  Process& tcp = launch(elastic + Words{"--transport=tcp"});
  ASSERT_TRUE(all_exit({&shared, &tcp}, kExitDone));
  EXPECT_EQ(weights_hash_in(shared), weights_hash_in(tcp));
  EXPECT_EQ(count_of(shared.standard_error(), "shares memory with 2 of 2 ps"), 3U);
}

// A single ps has memory for seven of the eight gradients of a step, of 9.5 MB each.
TEST_F(Transport, GradientsForWhichThereIsNoRoomAreSent) {
  const Words large = Words{"launch",
                            "--ps=2",
                            "--workers=1",
                            "--max_workers=8",
                            "--min_workers=1",
                            "--micro_batches=8",
                            "--hidden_units=3000",
                            "--batch_size=5",
                            "--train_steps=8",
                            "--wire_dtype=int8",
                            "--print_weights_hash"} +
                      few_images();
  Process& shared = run("shared", large + Words{"--transport=shm"});
  Process& tcp = run("tcp", large + Words{"--transport=tcp"});
  ASSERT_TRUE(all_exit({&shared, &tcp}, kExitDone));
  EXPECT_EQ(weights_hash_in(shared), weights_hash_in(tcp));
}

TEST_F(Transport, SnapshotsInSharedMemoryAreThoseThatAreSent) {
  const auto saving = [this](const std::string& transport) {
    return Words{"--save_steps=30", "--transport=" + transport,
                 "--train_dir=" + (scratch() / transport).string()};
  };
  Process& shared = launch(saving("shm"));
  Process& tcp = launch(saving("tcp"));
  ASSERT_TRUE(all_exit({&shared, &tcp}, kExitDone));
  EXPECT_GE(count_of(shared.standard_error(), "shares memory for snapshots with ps 0"), 1U);
  EXPECT_GE(count_of(shared.standard_error(), "shares memory for snapshots with ps 1"), 1U);
  EXPECT_EQ(count_of(tcp.standard_error(), "shares memory"), 0U);
  // Which steps are saved, besides the last, depends on the machine.
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch() / "shm")) {
    const auto file = entry.path().filename() / "model-00001-of-00001.safetensors";
    if (std::filesystem::exists(scratch() / "tcp" / file)) {
      constexpr std::size_t kMostBytes = std::size_t{1} << 24U;
      EXPECT_EQ(data::read_file(scratch() / "shm" / file, kMostBytes),
                data::read_file(scratch() / "tcp" / file, kMostBytes))
          << file;
      ++compared;
    }
  }
  EXPECT_GE(compared, 1U);
}

TEST_F(Transport, AsyncTakesSharedMemoryToo) {
  Process& job = launch({"--transport=shm", "--sync_replicas=false"});
  ASSERT_TRUE(exits(job, kExitDone));
}

TEST_F(Transport, MayDifferFromTaskToTask) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 3});
  Tasks tasks;
  tasks.ps = {&run_task(cluster, Job::kPs, 0, {"--transport=tcp"}),
              &run_task(cluster, Job::kPs, 1)};
  const std::string saved = "--train_dir=" + (scratch() / "saved").string();
  tasks.trainers = {&run_task(cluster, Job::kWorker, 0, kRun + Words{saved}),
                    &run_task(cluster, Job::kWorker, 1, kRun + Words{"--transport=tcp"}),
                    &run_task(cluster, Job::kWorker, 2, kRun)};
  ASSERT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_TRUE(says(*tasks.trainers[0], "shares memory with 1 of 2 ps"));
  EXPECT_TRUE(says(*tasks.trainers[0], "shares memory for snapshots with ps 1"));
  EXPECT_EQ(count_of(tasks.trainers[0]->standard_error(), "shares memory for snapshots with ps 0"),
            0U);
  Process& undisturbed = launch({});
  ASSERT_TRUE(exits(undisturbed, kExitDone));
  for (Process* trainer : tasks.trainers) {
    EXPECT_EQ(weights_hash_in(*trainer), weights_hash_in(undisturbed));
  }
}

TEST_F(Transport, TrainerThatInsistsNamesThePsThatHasNone) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  run_task(cluster, Job::kPs, 0, {"--transport=tcp", "--peer_timeout=1"});
  Process& worker = run_task(cluster, Job::kWorker, 0, kRun + Words{"--transport=shm"});
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_TRUE(says(worker, "--transport shm: no memory can be shared with ps 0"));
}

// Over tcp, such a gradient is sent while the rest of it is still being computed.
TEST_F(Transport, LargeGradientsLeadToBitIdenticalResultsToo) {
  const Words large =
      Words{"launch",          "--ps=2",           "--workers=3",         "--hidden_units=1400",
            "--batch_size=20", "--train_steps=40", "--print_weights_hash"} +
      few_images();
  Process& shared = run("shared", large + Words{"--transport=shm"});
  Process& tcp = run("tcp", large + Words{"--transport=tcp"});
  ASSERT_TRUE(all_exit({&shared, &tcp}, kExitDone));
  EXPECT_EQ(weights_hash_in(shared), weights_hash_in(tcp));
}

// The defaults, and so most tests of recovery, use shared memory; this test uses tcp.
TEST_F(Transport, TcpSurvivesAKilledPsAndAKilledWorker) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  const Words flags =
      kRun + Words{"--transport=tcp", "--log_every=1", "--debug_delay_ms=30", "--save_steps=20"};
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_TRUE(says(tasks.chief(), "global step: [4-9][0-9],"));
  ASSERT_NO_FATAL_FAILURE(kill_and_start_again(cluster, tasks, {"--transport=tcp"}, flags));
  ASSERT_TRUE(all_exit(tasks.all(), kExitDone));
  Process& undisturbed = launch({});
  ASSERT_TRUE(exits(undisturbed, kExitDone));
  for (Process* trainer : tasks.trainers) {
    EXPECT_EQ(weights_hash_in(*trainer), weights_hash_in(undisturbed));
  }
}

}  // namespace
}  // namespace disttf::test_process
