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

// A ps that is lost and comes back empty, alone or with others: the chief rolls back all ps to one
// state, and the run's result is bit-identical to an undisturbed one.

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

// A chief that returns with another configuration after all ps of the run were lost with it: the
// weights are those of the new configuration, or a task that cannot train with it exits with a
// sentence. And after a rejected configuration, the right one is accepted.

const Words kOtherRun = {"--train_steps=120", "--print_weights_hash", "--model=softmax"};

class OtherConfiguration : public ProcessTest {
 protected:
  static void kill(Process& process) {
    process.send(SIGKILL);
    ASSERT_TRUE(killed(process, SIGKILL));
  }
  // Kills the chief and the ps, and restarts them once they are gone, the chief with `more`.
  void begin_anew(const ClusterOnLoopback& cluster, Tasks& tasks, const Words& more) {
    ASSERT_TRUE(says(*tasks.trainers[1], "global step: 20,"));
    for (Process* each : tasks.ps) {
      kill(*each);
    }
    kill(tasks.chief());
    for (std::size_t index = 0; index < tasks.ps.size(); ++index) {
      tasks.ps[index] = &run_task(cluster, Job::kPs, index, more);
    }
    tasks.trainers[0] = &run_task(cluster, Job::kWorker, 0, more);
  }

  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 2}};
};

TEST_F(OtherConfiguration, AWorkerThatLivesOnTrainsWithTheOneThatTheNextChiefPublishes) {
  Tasks tasks = run_cluster(cluster_, kOtherRun + kSlowly);
  const Words other = {"--seed=2", "--batch_size=64"};
  begin_anew(cluster_, tasks, kOtherRun + kSlowly + other);
  EXPECT_TRUE(says(*tasks.trainers[1],
                   "--batch_size is 64, it was 100; .*--seed is 2, it was 1|"
                   "--seed is 2, it was 1; .*--batch_size is 64, it was 100"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--ps=2", "--workers=2"} + kOtherRun + other);
}

// The worker's own flags name the model of the previous run.
TEST_F(OtherConfiguration, AWorkerThatLivesOnTakesAnotherModelToo) {
  Tasks tasks = run_cluster(cluster_, kOtherRun + kSlowly + impatient());
  const Words other = {"--train_steps=120", "--print_weights_hash", "--model=mlp"};
  begin_anew(cluster_, tasks, other + kSlowly + impatient());
  EXPECT_TRUE(says(*tasks.trainers[1], "--model is \"mlp\", it was \"softmax\""));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--ps=2", "--workers=2"} + other);
}

TEST_F(OtherConfiguration, AChiefThatIsRefusedForReplicasDoesNotKeepTheRightOneAway) {
  Tasks tasks = run_cluster(cluster_, kOtherRun + kSlowly);
  ASSERT_TRUE(says(tasks.chief(), "global step: 20,"));
  kill(*tasks.ps[0]);
  kill(tasks.chief());
  tasks.ps[0] = &run_task(cluster_, Job::kPs, 0);
  ASSERT_TRUE(says(*tasks.ps[0], "Started server"));
  Process& wrong =
      run_task(cluster_, Job::kWorker, 0, kOtherRun + kSlowly + Words{"--ps_replicas=2"});
  EXPECT_TRUE(exits(wrong, kExitUsage));
  EXPECT_TRUE(says(wrong, "--ps_replicas: 2 is not allowed here"));
  tasks.trainers[0] = &run_task(cluster_, Job::kWorker, 0, kOtherRun + kSlowly);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--ps=2", "--workers=2"} + kOtherRun);
}

}  // namespace
}  // namespace disttf::test_process
