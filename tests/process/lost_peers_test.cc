// Tasks that die or freeze in the middle of a run: the others exit in bounded time, with 138 and a
// sentence that names the lost task.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

class LostPeers : public ProcessTest {
 protected:
  // Starts all tasks of an endless run, and waits until each trains.
  Tasks run_endless(const ClusterOnLoopback& cluster, const Words& more = {}) {
    Tasks tasks = run_cluster(cluster, endless() + impatient() + more);
    for (Process* trainer : tasks.trainers) {
      EXPECT_TRUE(says(*trainer, "training step 3 done"));
    }
    return tasks;
  }

  std::string name(Job job, std::size_t index) const {
    return std::string(net::job_name(job)) + " " + std::to_string(index) + " \\(" +
           cluster_.address(job, index) + "\\)";
  }

  // The bound with impatient(): the trainers time out on a ps, then the other ps on the chief.
  static constexpr seconds kPsGivenUp{1 + 1};
  static constexpr seconds kTrainerGivenUp{1};

  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 2, .chief = true}};
};

TEST_F(LostPeers, PsKilled) {
  const Tasks tasks = run_endless(cluster_);
  tasks.ps[1]->send(SIGKILL);
  EXPECT_TRUE(all_exit_in({tasks.ps[0], tasks.trainers[0], tasks.trainers[1], tasks.trainers[2]},
                          kExitLostPeers, kPsGivenUp + kSoon));
  for (Process* trainer : tasks.trainers) {
    EXPECT_TRUE(says(*trainer, name(Job::kPs, 1) + " has been gone for 1 s"));
  }
}

TEST_F(LostPeers, ChiefKilled) {
  const Tasks tasks = run_endless(cluster_);
  tasks.chief().send(SIGKILL);
  EXPECT_TRUE(all_exit_in({tasks.ps[0], tasks.ps[1], tasks.trainers[1], tasks.trainers[2]},
                          kExitLostPeers, kTrainerGivenUp + kSoon));
  for (Process* task : {tasks.ps[0], tasks.ps[1], tasks.trainers[1], tasks.trainers[2]}) {
    EXPECT_TRUE(says(*task, "the chief, " + name(Job::kChief, 0) + ", has been gone for 1 s"));
  }
}

TEST_F(LostPeers, WorkerKilled) {
  const Tasks tasks = run_endless(cluster_);
  tasks.trainers[2]->send(SIGKILL);
  EXPECT_TRUE(all_exit_in({tasks.ps[0], tasks.ps[1], tasks.trainers[0], tasks.trainers[1]},
                          kExitLostPeers, kTrainerGivenUp + kSoon));
  for (Process* task : {tasks.ps[0], tasks.ps[1], tasks.trainers[0], tasks.trainers[1]}) {
    EXPECT_TRUE(says(*task, name(Job::kWorker, 1) + " has been gone for 1 s"));
  }
}

TEST_F(LostPeers, WorkerKilledInAnAsynchronousRunThatGoesOn) {
  const Words flags = {"--sync_replicas=false", "--train_steps=600", "--debug_delay_ms=30",
                       "--log_every=1"};
  const Tasks tasks = run_cluster(cluster_, impatient() + flags);
  ASSERT_TRUE(says(*tasks.trainers[2], "training step 3 done"));
  tasks.trainers[2]->send(SIGKILL);
  EXPECT_TRUE(all_exit(tasks.ps, kExitDone));
  EXPECT_TRUE(all_exit({tasks.trainers[0], tasks.trainers[1]}, kExitDone));
  EXPECT_TRUE(says(tasks.chief(), "After 600 training step"));
}

TEST_F(LostPeers, WorkerKilledThatBackupWorkersMakeUpFor) {
  const Words flags = {"--replicas_to_aggregate=2", "--train_steps=300", "--debug_delay_ms=30",
                       "--log_every=1"};
  const Tasks tasks = run_cluster(cluster_, impatient() + flags);
  ASSERT_TRUE(says(*tasks.trainers[2], "training step 3 done"));
  tasks.trainers[2]->send(SIGKILL);
  EXPECT_TRUE(all_exit(tasks.ps, kExitDone));
  EXPECT_TRUE(all_exit({tasks.trainers[0], tasks.trainers[1]}, kExitDone));
}

TEST_F(LostPeers, WorkerFrozenAndTheFrozenOneOnceItGoesOn) {
  const Tasks tasks = run_endless(cluster_);
  tasks.trainers[2]->send(SIGSTOP);
  EXPECT_TRUE(all_exit(tasks.ps, kExitLostPeers));
  EXPECT_TRUE(all_exit({tasks.trainers[0], tasks.trainers[1]}, kExitLostPeers));
  EXPECT_TRUE(says(tasks.chief(), name(Job::kWorker, 1) + " has been gone for 1 s"));
  tasks.trainers[2]->send(SIGCONT);
  EXPECT_TRUE(exits(*tasks.trainers[2], kExitLostPeers));
  EXPECT_TRUE(says(*tasks.trainers[2], "refused by ps|ps [01] .* has been gone for 1 s"));
}

TEST_F(LostPeers, ChiefFrozen) {
  const Tasks tasks = run_endless(cluster_);
  tasks.chief().send(SIGSTOP);
  EXPECT_TRUE(all_exit(tasks.ps, kExitLostPeers));
  EXPECT_TRUE(all_exit({tasks.trainers[1], tasks.trainers[2]}, kExitLostPeers));
  tasks.chief().send(SIGCONT);
  EXPECT_TRUE(exits(tasks.chief(), kExitLostPeers));
}

TEST_F(LostPeers, PsFrozen) {
  const Tasks tasks = run_endless(cluster_);
  tasks.ps[0]->send(SIGSTOP);
  EXPECT_TRUE(all_exit(tasks.trainers, kExitLostPeers));
  EXPECT_TRUE(exits(*tasks.ps[1], kExitLostPeers));
  for (Process* trainer : tasks.trainers) {
    EXPECT_TRUE(says(*trainer, name(Job::kPs, 0) + " was lost|refused by ps 1"));
  }
  tasks.ps[0]->send(SIGCONT);
  EXPECT_TRUE(exits(*tasks.ps[0], kExitLostPeers));
}

}  // namespace
}  // namespace disttf::test_process
