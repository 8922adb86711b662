// Workers that come back: the run ends well, bit-identical to an undisturbed one.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

// Long enough that a worker can be killed in the middle of it, and not at its end.
const Words kRun = {"--train_steps=150", "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};

class Recovery : public ProcessTest {
 protected:
  void expect_undisturbed(const Tasks& tasks) {
    EXPECT_TRUE(all_exit(tasks.ps, kExitDone));
    ASSERT_TRUE(exits(tasks.chief(), kExitDone));
    Process& undisturbed = run("undisturbed", Words{"launch", "--workers=3"} + kRun + data_flags());
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    EXPECT_EQ(weights_hash_in(tasks.chief()), weights_hash_in(undisturbed));
  }

  // Waits for this step of a worker, restarted or not.
  static ::testing::AssertionResult reaches(Process& worker, int step) {
    return says(worker, "global step: " + std::to_string(step) + ",");
  }

  const ClusterOnLoopback cluster_{{.ps = 1, .workers = 3}};
};

TEST_F(Recovery, WorkerKilledAndRestarted) {
  const Tasks tasks = run_cluster(cluster_, kRun + kSlowly);
  ASSERT_TRUE(reaches(*tasks.trainers[1], 20));
  tasks.trainers[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.trainers[1], SIGKILL));
  Process& again = run_task(cluster_, Job::kWorker, 1, kSlowly);
  EXPECT_TRUE(exits(again, kExitDone));
  expect_undisturbed(tasks);
}

TEST_F(Recovery, TwoWorkersKilledAndRestartedOneAfterTheOther) {
  const Tasks tasks = run_cluster(cluster_, kRun + kSlowly);
  std::vector<Process*> again;
  for (const std::size_t worker : {1U, 2U}) {
    ASSERT_TRUE(reaches(tasks.chief(), worker == 1 ? 20 : 60));
    tasks.trainers[worker]->send(SIGKILL);
    ASSERT_TRUE(killed(*tasks.trainers[worker], SIGKILL));
    again.push_back(&run_task(cluster_, Job::kWorker, worker, kSlowly));
  }
  EXPECT_TRUE(all_exit(again, kExitDone));
  expect_undisturbed(tasks);
}

TEST_F(Recovery, ChiefKilledAndRestarted) {
  const Tasks tasks = run_cluster(cluster_, kRun + kSlowly);
  ASSERT_TRUE(reaches(tasks.chief(), 20));
  tasks.chief().send(SIGKILL);
  ASSERT_TRUE(killed(tasks.chief(), SIGKILL));
  Process& again = run_task(cluster_, Job::kWorker, 0, kRun + kSlowly);
  EXPECT_TRUE(all_exit({tasks.trainers[1], tasks.trainers[2]}, kExitDone));
  expect_undisturbed({.ps = tasks.ps, .trainers = {&again}});
}

TEST_F(Recovery, WorkerTakenForDeadThatComesBackByItself) {
  const Tasks tasks = run_cluster(cluster_, kRun + kSlowly + Words{"--heartbeat_timeout=2"});
  ASSERT_TRUE(reaches(*tasks.trainers[2], 20));
  tasks.trainers[2]->send(SIGSTOP);
  ASSERT_TRUE(says(*tasks.ps[0], "worker 2 .* was lost"));
  tasks.trainers[2]->send(SIGCONT);
  EXPECT_TRUE(exits(*tasks.trainers[2], kExitDone));
  expect_undisturbed(tasks);
}

// Like a scheduler that restarts a task on another machine before the old process is dead: here the
// second process gets its own port.
class RecoveryTakeOver : public Recovery, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(RecoveryTakeOver, NewerProcessTakesTheOldOnesPlace) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly);
  Process& older = *tasks.trainers[GetParam()];
  ASSERT_TRUE(reaches(older, 20));
  const ReservedPort other;
  ASSERT_EQ(listen(other.socket(), SOMAXCONN), 0);
  const data::FileDescriptor inherited(dup(other.socket()));  // dup() clears close-on-exec
  Process& newer =
      run_task(cluster_, Job::kWorker, GetParam(),
               kRun + kSlowly + Words{"--listen_fd=" + std::to_string(inherited.number())});
  EXPECT_TRUE(exits(older, kExitLostPeers));
  EXPECT_TRUE(says(older, "worker [01] .* has been replaced by a newer process"));
  tasks.trainers[GetParam()] = &newer;
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_undisturbed(tasks);
}

INSTANTIATE_TEST_SUITE_P(OfRank, RecoveryTakeOver, ::testing::Values(0, 1));

TEST_F(Recovery, SecondProcessOnTheSameAddressIsTurnedAway) {
  const Tasks tasks = run_cluster(cluster_, kRun + kSlowly);
  ASSERT_TRUE(reaches(*tasks.trainers[1], 20));
  Process& second = run_task(cluster_, Job::kWorker, 1);
  EXPECT_TRUE(exits(second, kExitCannotListen));
  EXPECT_TRUE(
      says(second, "worker 1 .*cannot listen on 127.0.0.1 port [0-9]+: Address already in use"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_undisturbed(tasks);
}

}  // namespace
}  // namespace disttf::test_process
