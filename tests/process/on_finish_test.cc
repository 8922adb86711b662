// --on_finish idle: for engines that restart every task that ends.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kIdle = {"--on_finish=idle", "--train_steps=20"};
const char* const kStays = "the run is over; staying until SIGTERM or SIGINT";

class OnFinish : public ProcessTest {
 protected:
  // Starts a run and waits until all tasks have finished and stay.
  Tasks finished(const ClusterOnLoopback& cluster) {
    const Tasks tasks = run_cluster(cluster, kIdle);
    for (Process* task : tasks.all()) {
      EXPECT_TRUE(says(*task, kStays));
    }
    return tasks;
  }
};

TEST_F(OnFinish, TasksStayWithTheirResultAndExitZeroOnSigterm) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  const Tasks tasks = finished(cluster);
  for (Process* trainer : tasks.trainers) {
    EXPECT_TRUE(says(*trainer, data_name() + " accuracy: "));
  }
  for (Process* task : tasks.all()) {
    EXPECT_TRUE(task->wait(milliseconds(0)).timed_out) << task->report();
    task->send(SIGTERM);
  }
  EXPECT_TRUE(all_exit_in(tasks.all(), kExitDone, kSoon));
}

TEST_F(OnFinish, AndOnSigint) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  const Tasks tasks = finished(cluster);
  for (Process* task : tasks.all()) {
    task->send(SIGINT);
  }
  EXPECT_TRUE(all_exit_in(tasks.all(), kExitDone, kSoon));
}

// Like an engine that moves a task to another machine.
TEST_F(OnFinish, ATrainerThatIsStartedAgainLearnsThatTheRunIsOver) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  const Tasks tasks = finished(cluster);
  for (std::size_t index = 0; index < 2; ++index) {  // worker 0 is the chief
    Process& gone = *tasks.trainers[index];
    gone.send(SIGKILL);
    EXPECT_TRUE(killed(gone, SIGKILL));
    Process& again = run_task(cluster, Job::kWorker, index, kIdle);
    EXPECT_TRUE(says(again, "the run has finished already"));
    EXPECT_TRUE(says(again, kStays));
    again.send(SIGTERM);
    EXPECT_TRUE(exits(again, kExitDone));
  }
  for (Process* ps : tasks.ps) {
    EXPECT_TRUE(ps->wait(milliseconds(0)).timed_out) << ps->report();
  }
}

TEST_F(OnFinish, AFailureEndsATaskAllTheSame) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& worker = run_task(cluster, Job::kWorker, 0, kIdle + Words{"--start_timeout=1"});
  EXPECT_TRUE(exits(worker, kExitLostPeers));
}

TEST_F(OnFinish, AnEvaluatorStaysToo) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& evaluator = run("evaluator", Words{"train", "--on_finish=idle"} + data_flags(),
                           {{"TF_CONFIG", cluster.tf_config("evaluator", 0)}});
  finished(cluster);
  EXPECT_TRUE(says(evaluator, kStays));
  evaluator.send(SIGTERM);
  EXPECT_TRUE(exits(evaluator, kExitDone));
}

TEST_F(OnFinish, IsForTasksOfAClusterAlone) {
  Process& alone = run("train", {"train", "--on_finish=idle"});
  EXPECT_TRUE(exits(alone, kExitUsage));
  EXPECT_TRUE(says(alone, "--on_finish: \"idle\" is not allowed without a cluster"));
}

}  // namespace
}  // namespace disttf::test_process
