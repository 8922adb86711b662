// `disttf resolve`, with the executable that users get, in the environments of orchestrators; and a
// task that finds its role there.
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

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
