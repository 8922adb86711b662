// A run whose tasks share a secret: what it is for is tested with sockets in tests/net/tls_test.cc;
// here that a run with one is the same run, and that nobody else gets in.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;
using ::testing::HasSubstr;

const Words kRun = {"--train_steps=100", "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};
constexpr const char* kOne = "the first secret of this test, long enough";
constexpr const char* kOther = "another secret of this test, long enough";

class Secret : public ProcessTest {
 protected:
  // A file that its owner alone may read, in the place of an older one at once.
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path made = scratch() / (name + ".new");
    std::ofstream(made) << text << '\n';
    std::filesystem::permissions(made, std::filesystem::perms::owner_read);
    std::filesystem::rename(made, scratch() / name);
  }
  [[nodiscard]] Words secret_in(const std::string& name) const {
    return {"--secret_file=" + (scratch() / name).string()};
  }
  // A worker that does not get in; the run that it meant goes on to its end.
  void expect_refused(const Words& flags, const std::string& why) {
    write("one", kOne);
    write("other", kOther);
    const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
    Process& ps = run_task(cluster, Job::kPs, 0, secret_in("one"));
    Process& chief = run_task(cluster, Job::kWorker, 0, kRun + secret_in("one"));
    ASSERT_TRUE(says(ps, "worker 0 .* joined"));
    Process& stranger = run_task(cluster, Job::kWorker, 1, kRun + flags);
    EXPECT_TRUE(exits(stranger, kExitUsage));
    EXPECT_THAT(stranger.standard_error(), HasSubstr(why));
    Process& worker = run_task(cluster, Job::kWorker, 1, kRun + secret_in("one"));
    EXPECT_TRUE(all_exit({&ps, &chief, &worker}, kExitDone));
    expect_weights_of_launch({&chief, &worker}, kRun + Words{"--workers=2"});
  }
};

TEST_F(Secret, ARunWithOneIsTheSameRun) {
  write("one", kOne);
  for (const char* transport : {"--transport=tcp", "--transport=auto"}) {
    const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
    const Tasks tasks = run_cluster(cluster, kRun + secret_in("one") + Words{transport});
    EXPECT_TRUE(all_exit(tasks.all(), kExitDone)) << transport;
    expect_weights_of_launch(tasks.trainers, kRun + Words{"--workers=2"});
  }
}

TEST_F(Secret, AnotherOneGetsNobodyIn) {
  expect_refused(secret_in("other"),
                 "has another secret: the secret of this task has the fingerprint");
}

TEST_F(Secret, NoneGetsNobodyIn) {
  expect_refused({}, "give this task the same one (--secret_file or DISTTF_SECRET)");
}

TEST_F(Secret, WhoHasOneSpeaksWithNobodyWhoHasNone) {
  write("one", kOne);
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run_task(cluster, Job::kPs, 0);
  Process& worker = run_task(cluster, Job::kWorker, 0, kRun + secret_in("one"));
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_THAT(worker.standard_error(), HasSubstr("secret"));
  ps.send(SIGTERM);
  EXPECT_TRUE(exits(ps, kExitTerminated));
}

TEST_F(Secret, MayBeAVariable) {
  Process& job =
      run("launch", Words{"launch", "--workers=2", "--transport=tcp"} + kRun + data_flags(),
          {{"DISTTF_SECRET", kOne}});
  ASSERT_TRUE(exits(job, kExitDone));
  Process& plain = run("launch", Words{"launch", "--workers=2"} + kRun + data_flags());
  ASSERT_TRUE(exits(plain, kExitDone));
  EXPECT_EQ(weights_hash_in(job), weights_hash_in(plain));
}

TEST_F(Secret, ThatOthersMayReadIsNone) {
  write("one", kOne);
  std::filesystem::permissions(scratch() / "one", std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run_task(cluster, Job::kPs, 0, secret_in("one"));
  EXPECT_TRUE(exits(ps, kExitUsage));
  EXPECT_THAT(ps.standard_error(), HasSubstr("its mode must be 0600 or 0400"));
}

TEST_F(Secret, AWorkerAndAPsMayBeKilled) {
  write("one", kOne);
  const Words flags = kRun + kSlowly + secret_in("one") + Words{"--transport=tcp"};
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_TRUE(says(tasks.chief(), "training step 20 done"));
  kill_and_start_again(cluster, tasks, secret_in("one"), flags);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, kRun + Words{"--workers=2"});
}

// First every task takes the new one as well, then each offers it, then nobody takes the old one.
TEST_F(Secret, ChangesWhileTheRunGoesOn) {
  write("one", kOne);
  const Words flags = kRun + kSlowly + secret_in("one") + Words{"--transport=tcp"};
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_TRUE(says(tasks.chief(), "training step 10 done"));
  write("one", std::string(kOne) + "\n" + kOther);
  write("one", std::string(kOther) + "\n" + kOne);
  write("one", kOther);
  ASSERT_TRUE(says(tasks.chief(), "training step 20 done"));
  kill_and_start_again(cluster, tasks, secret_in("one"), flags);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, kRun + Words{"--workers=2"});
}

TEST_F(Secret, ServersAndTheirDriverHaveOne) {
  write("one", kOne);
  write("other", kOther);
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  std::vector<Process*> servers;
  for (const char* job : {"ps", "worker"}) {
    servers.push_back(&run(std::string("server ") + job,
                           Words{"server", std::string("--job_name=") + job, "--task_index=0"} +
                               cluster.host_flags() + secret_in("one")));
  }
  Process& stranger =
      run("stranger", Words{"plus", "--wait=0"} + cluster.host_flags() + secret_in("other"));
  EXPECT_TRUE(exits(stranger, kExitUsage));
  Process& plus = run("plus", Words{"plus"} + cluster.host_flags() + secret_in("one"));
  EXPECT_TRUE(exits(plus, kExitDone));
  EXPECT_EQ(plus.standard_output(), "42\n");
  for (Process* server : servers) {
    server->send(SIGTERM);
    EXPECT_TRUE(exits(*server, kExitDone));
  }
}

}  // namespace
}  // namespace disttf::test_process
