// A ps that is lost and comes back empty, alone or with others: the chief rolls back all ps to one
// state, and the run's result is bit-identical to an undisturbed one.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=150", "--print_weights_hash"};
// Slow enough that a task can be killed in the middle of it.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};

// Takes snapshots, and logs each.
const Words kSaves = {"--save_steps=10", "--log_level=debug"};

class PsRecovery : public ProcessTest {
 protected:
  void kill(Process& process) {
    process.send(SIGKILL);
    ASSERT_TRUE(killed(process, SIGKILL));
  }

  // Restarts a killed ps.
  void restart_ps(Tasks& tasks, std::size_t index) {
    tasks.ps[index] = &run_task(cluster_, Job::kPs, index);
  }

  static ::testing::AssertionResult reaches(Process& trainer, int step) {
    return says(trainer, "global step: " + std::to_string(step) + ",");
  }

  void expect_undisturbed(const Tasks& tasks) {
    EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
    expect_weights_of_launch(tasks.trainers, Words{"--workers=2", "--chief"} + kRun);
  }

  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 2, .chief = true}};
};

TEST_F(PsRecovery, KilledBeforeThereIsASnapshot) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly + Words{"--save_secs=0"});
  ASSERT_TRUE(reaches(tasks.chief(), 20));
  kill(*tasks.ps[1]);
  restart_ps(tasks, 1);
  EXPECT_TRUE(says(tasks.chief(), "The run goes on from global step 0, generation 2"));
  expect_undisturbed(tasks);
}

TEST_F(PsRecovery, KilledAfterASnapshot) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly + kSaves);
  ASSERT_TRUE(says(tasks.chief(), kHasSnapshot));
  kill(*tasks.ps[0]);
  restart_ps(tasks, 0);
  EXPECT_TRUE(says(tasks.chief(), "The run goes on from global step [1-9][0-9]*, generation 2"));
  expect_undisturbed(tasks);
}

TEST_F(PsRecovery, BothKilledAtOnce) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly + kSaves);
  ASSERT_TRUE(says(tasks.chief(), kHasSnapshot));
  for (const std::size_t index : {0U, 1U}) {
    kill(*tasks.ps[index]);
  }
  for (const std::size_t index : {0U, 1U}) {
    restart_ps(tasks, index);
  }
  EXPECT_TRUE(says(tasks.chief(), "The run goes on from global step [1-9][0-9]*, generation 2"));
  expect_undisturbed(tasks);
}

TEST_F(PsRecovery, KilledOneAfterTheOther) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly + kSaves);
  int step = 25;
  for (const std::size_t index : {1U, 0U, 1U}) {
    ASSERT_TRUE(reaches(tasks.chief(), step));
    kill(*tasks.ps[index]);
    restart_ps(tasks, index);
    step += 40;
  }
  EXPECT_TRUE(says(tasks.chief(), "generation 4"));
  expect_undisturbed(tasks);
}

TEST_F(PsRecovery, KilledTogetherWithTheChief) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly + kSaves);
  ASSERT_TRUE(reaches(tasks.chief(), 25));
  kill(tasks.chief());
  kill(*tasks.ps[1]);
  restart_ps(tasks, 1);
  tasks.trainers[0] = &run_task(cluster_, Job::kChief, 0, kRun + kSlowly);
  expect_undisturbed(tasks);
}

TEST_F(PsRecovery, KilledTogetherWithAWorker) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly + kSaves);
  ASSERT_TRUE(reaches(tasks.chief(), 25));
  kill(*tasks.trainers[2]);
  kill(*tasks.ps[1]);
  tasks.trainers[2] = &run_task(cluster_, Job::kWorker, 1, kRun + kSlowly);
  restart_ps(tasks, 1);
  expect_undisturbed(tasks);
}

// All tasks take it for dead, but it has lost nothing.
TEST_F(PsRecovery, FrozenForLongerThanTheHeartbeatTimeout) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly + Words{"--heartbeat_timeout=2"});
  ASSERT_TRUE(reaches(tasks.chief(), 20));
  tasks.ps[1]->send(SIGSTOP);
  for (Process* trainer : tasks.trainers) {
    ASSERT_TRUE(says(*trainer, "ps 1 .* was lost"));
  }
  tasks.ps[1]->send(SIGCONT);
  expect_undisturbed(tasks);
}

TEST_F(PsRecovery, KilledInAnAsynchronousRunThatGoesOn) {
  const Words flags = {"--sync_replicas=false", "--train_steps=600", "--debug_delay_ms=10",
                       "--log_every=1", "--save_steps=50"};
  Tasks tasks = run_cluster(cluster_, flags);
  ASSERT_TRUE(says(tasks.chief(), "global step: [1-9][0-9][0-9],"));
  kill(*tasks.ps[1]);
  restart_ps(tasks, 1);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_TRUE(says(tasks.chief(), "After 600 training step"));
}

}  // namespace
}  // namespace disttf::test_process
