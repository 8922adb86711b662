// Tasks started one by one, as in the tutorials: by flags or by TF_CONFIG.
#include <fstream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=40", "--log_every=20"};

class FourTerminals : public ProcessTest {
 protected:
  // Starts each task by `start(job, index)`; all must exit with 0.
  template <typename Start>
  std::vector<Process*> expect_success(const ClusterOnLoopback& cluster, Start start) {
    std::vector<Process*> tasks;
    for (const Job job : {Job::kPs, Job::kWorker, Job::kChief}) {
      for (std::size_t index = 0; index < cluster.tasks().tasks_of(job).size(); ++index) {
        tasks.push_back(&start(job, index));
      }
    }
    EXPECT_TRUE(all_exit(tasks, kExitDone));
    return tasks;
  }
};

TEST_F(FourTerminals, TrainWithASubcommandForEachTask) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  const auto tasks = expect_success(cluster, [&](Job job, std::size_t index) -> Process& {
    return run_task(cluster, job, index, kRun);
  });
  EXPECT_GT(accuracy_in(*tasks[1]), 0.3);
}

TEST_F(FourTerminals, PrintTheLinesThatPeopleGrepFor) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  const auto tasks = expect_success(cluster, [&](Job job, std::size_t index) -> Process& {
    return run_task(cluster, job, index, kRun);
  });
  for (std::size_t each = 0; each < tasks.size(); ++each) {
    const std::string own =
        each == 0 ? cluster.address(Job::kPs, 0) : cluster.address(Job::kWorker, each - 1);
    EXPECT_THAT(tasks[each]->standard_error(),
                ::testing::HasSubstr("Started server with target: tcp://" + own));
  }
  EXPECT_TRUE(says(*tasks[1], "Worker 0: training step 20 done \\(global step: 20"));
  EXPECT_TRUE(says(*tasks[2], "Worker 1: training step 40 done \\(global step: 40"));
  EXPECT_TRUE(says(*tasks[1], "Training elapsed time: [0-9.]+ s"));
  EXPECT_TRUE(says(*tasks[1], "^After 40 training step\\(s\\), validation cross entropy = "));
  EXPECT_TRUE(says(*tasks[2], "^" + data_name() + " accuracy: 0\\.[0-9]{4}$"));
}

TEST_F(FourTerminals, TakeTheRoleFromJobName) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2, .chief = true});
  expect_success(cluster, [&](Job job, std::size_t index) -> Process& {
    const std::string name(net::job_name(job));
    return run(name, Words{"--job_name=" + name, "--task_index=" + std::to_string(index)} +
                         cluster.host_flags() + kRun + data_flags());
  });
}

TEST_F(FourTerminals, TakeTheSpellingsOfTheTutorials) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  expect_success(cluster, [&](Job job, std::size_t index) -> Process& {
    return run("task",
               Words{"--job-name", std::string(net::job_name(job)), "--worker_index",
                     std::to_string(index), "--sync_replicas", "True", "--train-steps", "40"} +
                   cluster.host_flags() + data_flags());
  });
}

TEST_F(FourTerminals, TakeTheRoleFromTfConfig) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  const auto tasks = expect_success(cluster, [&](Job job, std::size_t index) -> Process& {
    const std::string name(net::job_name(job));
    return run(name, Words{"train"} + kRun + data_flags(),
               {{"TF_CONFIG", cluster.tf_config(name, index)}});
  });
  EXPECT_GT(accuracy_in(*tasks.back()), 0.3);
}

TEST_F(FourTerminals, TakeTheRoleFromTfConfigWithoutACommand) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  expect_success(cluster, [&](Job job, std::size_t index) -> Process& {
    const std::string name(net::job_name(job));
    return run(name, kRun + data_flags(), {{"TF_CONFIG", cluster.tf_config(name, index)}});
  });
}

TEST_F(FourTerminals, ReachEachOtherByTheNameLocalhost) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2, .chief = false, .host = "localhost"});
  expect_success(cluster, [&](Job job, std::size_t index) -> Process& {
    return run_task(cluster, job, index, kRun);
  });
}

TEST_F(FourTerminals, ReadFlagsFromAConfigurationFile) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  std::ofstream(scratch() / "run.toml") << "train_steps = 7\nbatch_size = 10\n";
  const auto tasks = expect_success(cluster, [&](Job job, std::size_t index) -> Process& {
    return run_task(cluster, job, index, {"--config=run.toml", "--log_every=1"});
  });
  EXPECT_TRUE(says(*tasks[1], "^After 7 training step"));
}

TEST_F(FourTerminals, TrainOnThisMachineWhenNoClusterIsDescribed) {
  Process& job = run("train", Words{"train"} + kRun + data_flags());
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_GT(accuracy_in(job), 0.3);
}

}  // namespace
}  // namespace disttf::test_process
