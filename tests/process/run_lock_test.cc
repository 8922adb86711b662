// Two runs with the same --train_dir by mistake: the second one is refused. A killed run, or a
// restarted chief, does not block the next one.
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

}  // namespace
}  // namespace disttf::test_process
