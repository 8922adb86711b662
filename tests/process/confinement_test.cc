// The sandbox of each running task, as the kernel reports it for all of its threads.
// tests/run/confinement_test.cc tests what the sandbox prevents.
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;

// Returns the version of landlock(7), which covers files from version 2 on, and ports from 4 on;
// less than 1 if there is none.
long landlock_version() {
  constexpr long kCreateRuleset = 444;
  constexpr int kAskVersion = 1;
  return syscall(kCreateRuleset, nullptr, 0, kAskVersion);
}

class Confined : public ProcessTest {
 protected:
  // Checks each of the process' threads.
  static void expect_confined(pid_t pid, const std::string& who) {
    std::size_t threads = 0;
    const auto tasks = std::filesystem::path("/proc") / std::to_string(pid) / "task";
    for (const auto& thread : std::filesystem::directory_iterator(tasks)) {
      std::ifstream file(thread.path() / "status");
      std::ostringstream status;
      status << file.rdbuf();
      EXPECT_THAT(status.str(), HasSubstr("\nNoNewPrivs:\t1\n")) << who;
      EXPECT_THAT(status.str(), HasSubstr("\nSeccomp:\t2\n")) << who;
      ++threads;
    }
    EXPECT_GT(threads, 0U) << who;
  }
};

TEST_F(Confined, AreThePsTheWorkersAndTheChief) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  Tasks tasks = run_cluster(cluster, {"--train_steps=100000", "--log_every=1"});
  for (Process* trainer : tasks.trainers) {
    ASSERT_TRUE(says(*trainer, "training step 2 done"));
    expect_confined(trainer->pid(), "a trainer");
  }
  expect_confined(tasks.ps[0]->pid(), "a ps");
}

TEST_F(Confined, AreALaunchAndItsTasks) {
  Process& job =
      run("launch",
          Words{"launch", "--workers=2", "--train_steps=100000", "--log_every=1"} + data_flags());
  ASSERT_TRUE(says(job, "training step 2 done"));
  expect_confined(job.pid(), "the launch");
  std::ifstream children("/proc/" + std::to_string(job.pid()) + "/task/" +
                         std::to_string(job.pid()) + "/children");
  std::size_t count = 0;
  for (pid_t child = 0; children >> child; ++count) {
    expect_confined(child, "a task of the launch");
  }
  EXPECT_EQ(count, 3U);
}

// The actions that an attacker would try in a compromised task.
TEST_F(Confined, ATaskOpensConnectsAndRunsNothingElse) {
  if (landlock_version() < 4 || prctl(PR_GET_SECCOMP) < 0) {
    GTEST_SKIP()
        << "this kernel, or this container, has no Landlock for ports (Linux 6.7), or no seccomp";
  }
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  const std::filesystem::path secret = scratch() / "secret";
  std::ofstream(secret) << "of another task";
  const ReservedPort other;
  const std::string where = "127.0.0.1:" + std::to_string(other.number());
  // Without --train_dir a chief temporarily keeps files in the directory of temporary files.
  const Words attempts = {
      "--train_dir=" + (scratch() / "trained").string(),
      "--debug_attempts=open:" + secret.string() + ",connect:" + where + ",exec:/bin/true"};
  for (const net::Job job : {net::Job::kPs, net::Job::kWorker}) {
    Process& task = run_task(cluster, job, 0, attempts);
    EXPECT_TRUE(says(task, "open " + secret.string() + ": Permission denied"));
    EXPECT_TRUE(says(task, "connect " + where + ": Permission denied"));
    EXPECT_TRUE(says(task, "exec /bin/true: Operation not permitted"));
  }
  // The kernel rejects the attempts: a task without a sandbox gets other errors.
  Process& free = run_task(cluster, net::Job::kPs, 0,
                           {"--confine=false", "--debug_attempts=open:" + secret.string() +
                                                   ",connect:" + where + ",exec:/bin/true"});
  EXPECT_TRUE(exits(free, kExitDone));
  EXPECT_TRUE(says(free, "open " + secret.string() + ": done"));
  EXPECT_TRUE(says(free, "connect " + where + ": Connection refused"));
}

// A folder of models gets a link to a model outside of it after the service has started.
TEST_F(Confined, FollowsNoLinkThatComesLater) {
  if (landlock_version() < 2) {
    GTEST_SKIP() << "this kernel, or this container, has no Landlock";
  }
  namespace fs = std::filesystem;
  const fs::path trained = scratch() / "trained";
  const fs::path models = scratch() / "served" / "models";  // its parent folder may be read, too
  fs::create_directories(models);
  Process& job = run("launch", {"launch", "--workers=1", "--train_steps=2", "--dataset=digits",
                                "--train_dir=" + trained.string()});
  ASSERT_TRUE(exits(job, kExitDone));
  const Words words = {"serve", models.string(), "--port=0"};
  Process& confined = run("confined", words);
  Process& free = run("free", words + Words{"--confine=false"});
  ASSERT_TRUE(says(confined, "serving at "));
  ASSERT_TRUE(says(free, "serving at "));
  fs::create_directory_symlink(trained / "checkpoint-00000002", models / "7");
  EXPECT_TRUE(says(free, "Serving version 7"));
  EXPECT_TRUE(says(confined, "cannot read .*models/7: Permission denied"));
}

}  // namespace
}  // namespace disttf::test_process
