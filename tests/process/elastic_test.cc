// Elastic workers: the set of connected workers at any time does not affect the result.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=200", "--print_weights_hash", "--min_workers=1"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};

class Elastic : public ProcessTest {
 protected:
  static ::testing::AssertionResult reaches(Process& trainer, int step) {
    return says(trainer, "global step: " + std::to_string(step) + ",");
  }

  Process& start(Job job, std::size_t index) {
    return run_task(cluster_, job, index, job == Job::kPs ? Words{} : kRun + kSlowly);
  }

  // Starts a task whose lists have only the first `listed` workers, with --max_workers 3.
  Process& start_open(Job job, std::size_t index, std::size_t listed, const Words& flags) {
    std::vector<net::Address> workers = cluster_.tasks().workers;
    workers.resize(listed);
    const std::string name(net::job_name(job));
    return run(name + " " + std::to_string(index),
               Words{name, "--task_index=" + std::to_string(index),
                     "--ps_hosts=" + cluster_.list(Job::kPs),
                     "--worker_hosts=" + net::to_string(workers), "--max_workers=3"} +
                   data_flags() + flags);
  }

  // The hash of a run in which all workers are connected from beginning to end.
  std::string undisturbed_hash() {
    Process& undisturbed =
        run("undisturbed", Words{"launch", "--workers=3", "--ps=1"} + kRun + data_flags());
    EXPECT_TRUE(exits(undisturbed, kExitDone));
    return weights_hash_in(undisturbed);
  }

  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 3}};
};

TEST_F(Elastic, OneWorkerThenThreeThenTwo) {
  std::vector<Process*> ps = {&start(Job::kPs, 0), &start(Job::kPs, 1)};
  Process& chief = start(Job::kWorker, 0);
  ASSERT_TRUE(reaches(chief, 20));
  Process& second = start(Job::kWorker, 1);
  Process& third = start(Job::kWorker, 2);
  ASSERT_TRUE(says(second, "training step 3 done"));
  ASSERT_TRUE(says(third, "training step 3 done"));
  second.send(SIGKILL);
  ASSERT_TRUE(killed(second, SIGKILL));
  EXPECT_TRUE(all_exit({ps[0], ps[1], &chief, &third}, kExitDone));
  const std::string hash = undisturbed_hash();
  EXPECT_EQ(weights_hash_in(chief), hash);
  EXPECT_EQ(weights_hash_in(third), hash);
}

TEST_F(Elastic, PsKilledWhileWorkersComeAndGo) {
  std::vector<Process*> ps = {&start(Job::kPs, 0), &start(Job::kPs, 1)};
  Process& chief = start(Job::kWorker, 0);
  Process& second = start(Job::kWorker, 1);
  ASSERT_TRUE(reaches(chief, 20));
  ps[1]->send(SIGKILL);
  second.send(SIGKILL);
  ASSERT_TRUE(killed(*ps[1], SIGKILL));
  ASSERT_TRUE(killed(second, SIGKILL));
  ps[1] = &start(Job::kPs, 1);
  Process& third = start(Job::kWorker, 2);
  EXPECT_TRUE(all_exit({ps[0], ps[1], &chief, &third}, kExitDone));
  EXPECT_EQ(weights_hash_in(chief), undisturbed_hash());
}

TEST_F(Elastic, WorkersJoinThatNoListNamed) {
  std::vector<Process*> ps;
  for (const std::size_t index : {0U, 1U}) {
    ps.push_back(&start_open(Job::kPs, index, 1, {}));
  }
  Process& chief = start_open(Job::kWorker, 0, 1, kRun + kSlowly);
  ASSERT_TRUE(reaches(chief, 20));
  Process& third = start_open(Job::kWorker, 2, 3, kRun + kSlowly);
  ASSERT_TRUE(says(third, "training step 3 done"));
  const std::string sparse = R"({"sparseCluster":{"ps":[")" + cluster_.address(Job::kPs, 0) +
                             R"(",")" + cluster_.address(Job::kPs, 1) + R"("],"worker":{"1":")" +
                             cluster_.address(Job::kWorker, 1) +
                             R"("}},"task":{"type":"worker","index":1}})";
  Process& second =
      run("worker 1", Words{"train"} + data_flags() + kRun + kSlowly, {{"TF_CONFIG", sparse}});
  ASSERT_TRUE(says(second, "training step 3 done"));
  third.send(SIGKILL);
  ASSERT_TRUE(killed(third, SIGKILL));
  EXPECT_TRUE(all_exit({ps[0], ps[1], &chief, &second}, kExitDone));
  const std::string hash = undisturbed_hash();
  EXPECT_EQ(weights_hash_in(chief), hash);
  EXPECT_EQ(weights_hash_in(second), hash);
}

TEST_F(Elastic, MoreThanMayBeThereAreRefused) {
  const ClusterOnLoopback larger({.ps = 1, .workers = 4});
  const Words lists = {"--ps_hosts=" + larger.list(Job::kPs)};
  const std::string first = "--worker_hosts=" + larger.address(Job::kWorker, 0);
  run("ps 0", Words{"ps", "--task_index=0", first, "--max_workers=3"} + lists);
  Process& fourth = run("worker 3", Words{"worker", "--task_index=3", "--max_workers=4",
                                          "--worker_hosts=" + larger.list(Job::kWorker)} +
                                        lists + data_flags());
  EXPECT_TRUE(exits(fourth, kExitUsage));
  EXPECT_TRUE(says(fourth, "there is no worker 3 in the cluster of ps 0.*, which has 3"));
}

TEST_F(Elastic, AWorkerThatNoListNamedJoinsAnAsynchronousRun) {
  const Words async = {"--sync_replicas=false", "--train_steps=200"};
  std::vector<Process*> tasks;
  for (const std::size_t index : {0U, 1U}) {
    tasks.push_back(&start_open(Job::kPs, index, 1, {}));
  }
  tasks.push_back(&start_open(Job::kWorker, 0, 1, async + kSlowly));
  ASSERT_TRUE(reaches(*tasks.back(), 20));
  tasks.push_back(&start_open(Job::kWorker, 2, 3, async + kSlowly));
  ASSERT_TRUE(says(*tasks.back(), "training step 3 done"));
  EXPECT_TRUE(all_exit(tasks, kExitDone));
}

TEST_F(Elastic, FewerThanTheLeastNumberAreWaitedForThenTheRunEnds) {
  const Words flags = {"--min_workers=2", "--log_every=1", "--train_steps=1000000"};
  std::vector<Process*> tasks;
  for (const std::size_t index : {0U, 1U}) {
    tasks.push_back(&run_task(cluster_, Job::kPs, index, {"--worker_timeout=1"}));
  }
  for (const std::size_t index : {0U, 1U, 2U}) {
    tasks.push_back(&run_task(cluster_, Job::kWorker, index, flags));
    ASSERT_TRUE(says(*tasks.back(), index == 0 ? "Training begins" : "training step 3 done"));
  }
  for (const std::size_t lost : {3U, 4U}) {
    tasks[lost]->send(SIGKILL);
    ASSERT_TRUE(killed(*tasks[lost], SIGKILL));
  }
  EXPECT_TRUE(all_exit({tasks[0], tasks[1], tasks[2]}, kExitLostPeers));
  EXPECT_TRUE(says(*tasks[2], "worker [12] .* has been gone for 1 s"));
}

}  // namespace
}  // namespace disttf::test_process
