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

// `disttf resolve`, with the executable that users get, in the environments of orchestrators; and a
// task that finds its role there.

class Resolve : public ProcessTest {};

const Variables kSlurm = {{"SLURM_STEP_NODELIST", "n[09-10]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_PROCID", "2"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_GTIDS", "2,3"}};

TEST_F(Resolve, PrintsWhatASlurmStepSays) {
  Process& task = run("resolve", {"resolve", "--print", "--chief"}, kSlurm);
  EXPECT_TRUE(exits(task, kExitDone));
  EXPECT_EQ(task.standard_error(), "");
  for (const char* row :
       {"resolver    slurm\n", "worker 0 ", "SLURM_PROCID (the place 2)\n", "n09:2222 ",
        "n09:2223 ", "n10:2222,n10:2223 ", "SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE\n"}) {
    EXPECT_THAT(task.standard_output(), ::testing::HasSubstr(row));
  }
}

TEST_F(Resolve, ReadsTheMachinesNameAndNotTheVariable) {
  Process& task = run("resolve",
                      {"resolve", "--resolver=statefulset", "--ps=1", "--workers=1",
                       "--task_hosts={job}-{index}:1"},
                      {{"HOSTNAME", "mnist-ps-0"}});
  // This machine's name differs.
  EXPECT_TRUE(exits(task, kExitUsage));
  EXPECT_TRUE(says(task, "--resolver: statefulset needs a host name like mnist-worker-0"));
}

TEST_F(Resolve, RefusesWhatIsBrokenInOneSentence) {
  Variables hostile = kSlurm;
  hostile["SLURM_STEP_NODELIST"] = "n[0-999999999]";
  for (const Words& words : {Words{"resolve", "--json"}, Words{"train"}}) {
    Process& task = run("task", words, hostile);
    EXPECT_TRUE(exits(task, kExitUsage));
    EXPECT_TRUE(says(task, R"(SLURM_STEP_NODELIST is "n\[0-999999999\]"; it names more than)"));
    EXPECT_EQ(count_of(task.standard_error(), "\n"), 1U);
    EXPECT_EQ(task.standard_output(), "");
  }
}

TEST_F(Resolve, TellsMpiWhatToDo) {
  Process& task =
      run("train", {"train"}, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_TRUE(exits(task, kExitUsage));
  EXPECT_TRUE(says(task, "Open MPI numbers the tasks but provides no addresses; give each"));
}

// As tfrun starts them: the same command, without flags for the role.
TEST_F(Resolve, TasksOfTfMesosTrain) {
  const ClusterOnLoopback cluster;
  const auto variables = [&](const char* job, const char* index) {
    return Variables{{"TFMESOS_DISTRIBUTED", "1"},
                     {"TFMESOS_PS_HOSTS", cluster.list(net::Job::kPs)},
                     {"TFMESOS_WORKER_HOSTS", cluster.list(net::Job::kWorker)},
                     {"TFMESOS_JOB_NAME", job},
                     {"TFMESOS_TASK_INDEX", index}};
  };
  const Words words = Words{"train", "--train_steps=20", "--dataset=digits"};
  Process& ps = run("ps", words, variables("ps", "0"));
  Process& first = run("worker 0", words, variables("worker", "0"));
  Process& second = run("worker 1", words, variables("worker", "1"));
  EXPECT_TRUE(all_exit({&ps, &first, &second}, kExitDone));
  EXPECT_TRUE(says(second, R"(resolver tfmesos: this is worker 1 \(not the chief, worker 0 is\))"));
  EXPECT_EQ(count_of(first.standard_output(), "Digits accuracy: "), 1U);
}

}  // namespace
}  // namespace disttf::test_process
