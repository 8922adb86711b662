// A chief that returns with another configuration after all ps of the run were lost with it: the
// weights are those of the new configuration, or a task that cannot train with it exits with a
// sentence. And after a rejected configuration, the right one is accepted.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=120", "--print_weights_hash", "--model=softmax"};
// Slow enough that a task can be killed in the middle of it.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};

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
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly);
  const Words other = {"--seed=2", "--batch_size=64"};
  begin_anew(cluster_, tasks, kRun + kSlowly + other);
  EXPECT_TRUE(says(*tasks.trainers[1],
                   "--batch_size is 64, it was 100; .*--seed is 2, it was 1|"
                   "--seed is 2, it was 1; .*--batch_size is 64, it was 100"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--ps=2", "--workers=2"} + kRun + other);
}

// The worker's own flags name the model of the previous run.
TEST_F(OtherConfiguration, AWorkerThatLivesOnTakesAnotherModelToo) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly + impatient());
  const Words other = {"--train_steps=120", "--print_weights_hash", "--model=mlp"};
  begin_anew(cluster_, tasks, other + kSlowly + impatient());
  EXPECT_TRUE(says(*tasks.trainers[1], "--model is \"mlp\", it was \"softmax\""));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--ps=2", "--workers=2"} + other);
}

TEST_F(OtherConfiguration, AChiefThatIsRefusedForReplicasDoesNotKeepTheRightOneAway) {
  Tasks tasks = run_cluster(cluster_, kRun + kSlowly);
  ASSERT_TRUE(says(tasks.chief(), "global step: 20,"));
  kill(*tasks.ps[0]);
  kill(tasks.chief());
  tasks.ps[0] = &run_task(cluster_, Job::kPs, 0);
  ASSERT_TRUE(says(*tasks.ps[0], "Started server"));
  Process& wrong = run_task(cluster_, Job::kWorker, 0, kRun + kSlowly + Words{"--ps_replicas=2"});
  EXPECT_TRUE(exits(wrong, kExitUsage));
  EXPECT_TRUE(says(wrong, "--ps_replicas: 2 is not allowed here"));
  tasks.trainers[0] = &run_task(cluster_, Job::kWorker, 0, kRun + kSlowly);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--ps=2", "--workers=2"} + kRun);
}

}  // namespace
}  // namespace disttf::test_process
