// `disttf launch -- COMMAND`: any program as a cluster on this machine, and how it ends.
#include <algorithm>
#include <csignal>
#include <fstream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A script that waits for a signal, and prints when it is ready for one.
const std::string kWaits = "echo ready; while :; do sleep 1000 & wait; done";

class ProgramLaunch : public ProcessTest {
 protected:
  // Runs one shell script as every task; the script distinguishes them.
  Process& launch(const Words& flags, const std::string& script, const Words& arguments = {}) {
    return run("launch",
               Words{"launch"} + flags + Words{"--", "/bin/sh", "-c", script, "sh"} + arguments);
  }

  // Returns the sorted lines of a file that all tasks write: their order varies.
  static Words sorted_lines(const std::filesystem::path& path) {
    std::ifstream file(path);
    Words lines;
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }
};

TEST_F(ProgramLaunch, TellsEachTaskWhoItIsInWordsAndVariables) {
  Process& job = launch(
      {"-w", "2", "-s", "1"},
      "[ \"$1 $2\" = \"$TFMESOS_PS_HOSTS $TFMESOS_WORKER_HOSTS\" ] && "
      "[ \"$TFMESOS_DISTRIBUTED\" = 1 ] && "
      "echo \"$3 $4 of $5; $TFMESOS_JOB_NAME $TFMESOS_TASK_INDEX; $6\"",
      {"{ps_hosts}", "{worker_hosts}", "{job_name}", "{task_index}", "{{ps}}", "two  words $HOME"});
  ASSERT_TRUE(exits(job, kExitDone));
  for (const std::string name : {"worker 0", "worker 1"}) {
    std::string prefix = "[" + name + "] ";
    std::replace(prefix.begin(), prefix.end() - 2, ' ', ':');
    EXPECT_THAT(job.standard_output(),
                HasSubstr(prefix + name + " of {ps}; " + name + "; two  words $HOME\n"));
  }
}

// Numbers and UUIDs stay as the variable has them.
TEST_F(ProgramLaunch, GivesEachWorkerGpusOfItsOwnAndPsNone) {
  const std::string script =
      "echo \"$TFMESOS_JOB_NAME $TFMESOS_TASK_INDEX:$CUDA_VISIBLE_DEVICES|$CUDA_DEVICE_ORDER|"
      "$CUBLAS_WORKSPACE_CONFIG\" >> seen; until [ $(wc -l < seen) = 3 ]; do sleep 0.01; done";
  Process& job =
      run_program("/usr/bin/env",
                  Words{"CUDA_VISIBLE_DEVICES=3,GPU-a,1,0", disttf_binary(), "launch", "-w", "2",
                        "-s", "1", "--gpus_per_worker", "2", "--", "/bin/sh", "-c", script},
                  "launch");
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(sorted_lines(scratch() / "seen"),
              ElementsAre("ps 0:||", "worker 0:3,GPU-a|PCI_BUS_ID|:4096:8",
                          "worker 1:1,0|PCI_BUS_ID|:4096:8"));
}

// The complete path: reserved ports on which a task can listen, TF_CONFIG, exit.
TEST_F(ProgramLaunch, TrainsWithDisttfItselfAsTheCommand) {
  const Words flags =
      Words{"--train_steps=100", "--print_weights_hash", "--transport=tcp"} + data_flags();
  Process& job =
      run("launch", Words{"launch", "-w", "2", "-s", "1", "--", disttf_binary(), "train"} + flags);
  ASSERT_TRUE(exits(job, kExitDone));
  Process& usual = run("usual launch", Words{"launch", "--workers=2", "--ps=1"} + flags);
  ASSERT_TRUE(exits(usual, kExitDone));
  EXPECT_THAT(job.standard_output(),
              HasSubstr("[worker:0] Weights SHA-256: " + weights_hash_in(usual) + "\n"));
  EXPECT_THAT(job.standard_output(), HasSubstr("[worker:1] " + data_name() + " accuracy: "));
}

TEST_F(ProgramLaunch, HandsTheHostsToFlagsToo) {
  Process& job = run("launch", Words{"launch", "-w", "1", "-s", "2", "--", disttf_binary(), "train",
                                     "--ps-hosts={ps_hosts}", "--worker_hosts", "{worker_hosts}",
                                     "--job_name={job_name}", "--worker_index", "{task_index}",
                                     "--train_steps=5"} +
                                   data_flags());
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(job.standard_output(), HasSubstr(" accuracy: "));
}

TEST_F(ProgramLaunch, TellsPsProgramsToEndWhenTheWorkersHave) {
  Process& job = launch({"-w", "2", "-s", "1"},
                        "[ $TFMESOS_JOB_NAME = worker ] && exit 0; "
                        "trap 'echo told; exit 3' TERM; " +
                            kWaits);
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(job.standard_error(), Not(HasSubstr("disttf launch: ")));
}

TEST_F(ProgramLaunch, WaitsForEveryWorker) {
  Process& job = launch({"-w", "2", "-s", "0"},
                        "if [ $TFMESOS_TASK_INDEX = 0 ]; then echo $$ > first; exit; fi; "
                        "until [ -s first ]; do sleep 0.01; done; "
                        "while kill -0 $(cat first) 2>/dev/null; do sleep 0.01; done; echo last");
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_EQ(job.standard_output(), "[worker:1] last\n");
}

TEST_F(ProgramLaunch, EndsAllWithTheCodeOfTheOneThatFailed) {
  for (const std::string failing : {"worker 1", "ps 0"}) {
    Process& job =
        launch({"-w", "2", "-s", "1"}, "[ \"$TFMESOS_JOB_NAME $TFMESOS_TASK_INDEX\" = '" + failing +
                                           "' ] && exit 7; " + kWaits);
    EXPECT_TRUE(exits(job, 7));
    std::string name = failing;
    std::replace(name.begin(), name.end(), ' ', ':');
    EXPECT_TRUE(
        says(job, "disttf launch: \\[" + name + "\\] ended with exit code 7; stopping the others"));
  }
}

TEST_F(ProgramLaunch, EndsAsAShellWouldWhenATaskIsKilled) {
  Process& job = launch({"-w", "2"}, "[ $TFMESOS_TASK_INDEX = 1 ] && kill -KILL $$; " + kWaits);
  EXPECT_TRUE(exits(job, 128 + SIGKILL));
  EXPECT_TRUE(says(job, "\\[worker:1\\] was killed by signal 9"));
}

TEST_F(ProgramLaunch, PassesASignalOnAndLeavesNoProcess) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process& job = launch({"-w", "2", "-s", "1"}, kWaits);
    ASSERT_TRUE(says_times(job, 3, "\\] ready"));
    std::vector<pid_t> left = children_of(job.pid());
    ASSERT_EQ(left.size(), 3U);
    for (const pid_t shell : children_of(job.pid())) {
      for (const pid_t sleeper : children_of(shell)) {
        left.push_back(sleeper);
      }
    }
    job.send(signal);
    EXPECT_TRUE(exits(job, 128 + signal));
    EXPECT_TRUE(wait_until_gone(left));
  }
}

TEST_F(ProgramLaunch, KillsWhoDoesNotTakeTheSignal) {
  Process& job = launch({"-w", "1", "-s", "0"}, "trap '' TERM; " + kWaits);
  ASSERT_TRUE(says(job, "ready"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_TRUE(says(job, "\\[worker:0\\] did not end within 5 s; killing it"));
}

TEST_F(ProgramLaunch, TasksDieWithALaunchThatIsKilled) {
  Process& job = launch({"-w", "2", "-s", "1"}, kWaits);
  ASSERT_TRUE(says_times(job, 3, "\\] ready"));
  const std::vector<pid_t> tasks = children_of(job.pid());
  job.send(SIGKILL);
  EXPECT_TRUE(killed(job, SIGKILL));
  EXPECT_TRUE(wait_until_gone(tasks));
}

TEST_F(ProgramLaunch, WhatATaskHasStartedGoesWithIt) {
  Process& job = launch({"-w", "1", "-s", "0"}, "sleep 1000 & echo $! > pid");
  ASSERT_TRUE(exits(job, kExitDone));
  pid_t sleeper = -1;
  std::ifstream(scratch() / "pid") >> sleeper;
  ASSERT_GT(sleeper, 0);
  EXPECT_TRUE(wait_until_gone({sleeper}));
}

TEST_F(ProgramLaunch, EndsThoughADaemonHoldsTheOutputOpen) {
  Process& job = launch({"-w", "1", "-s", "0"},
                        "setsid sh -c 'echo $$ > pid; sleep 1000' & "
                        "while [ ! -s pid ]; do sleep 0.01; done; echo done");
  EXPECT_TRUE(exits(job, kExitDone));
  pid_t daemon = -1;
  std::ifstream(scratch() / "pid") >> daemon;
  ASSERT_GT(daemon, 0);
  kill(-daemon, SIGKILL);  // it has left its task's group, so launch does not end it
  EXPECT_EQ(job.standard_output(), "[worker:0] done\n");
}

TEST_F(ProgramLaunch, ShowsTheChosenWorkersAlone) {
  const std::string script = "echo out; echo err >&2";
  Process& job = launch({"-w", "3", "-s", "0", "--worker_logs", "0,2"}, script);
  ASSERT_TRUE(exits(job, kExitDone));
  for (const std::string& text : {job.standard_output(), job.standard_error()}) {
    EXPECT_THAT(text, HasSubstr("[worker:0] "));
    EXPECT_THAT(text, Not(HasSubstr("[worker:1] ")));
    EXPECT_THAT(text, HasSubstr("[worker:2] "));
  }
}

TEST_F(ProgramLaunch, ShowsTheLastLinesOfAHiddenTaskThatFailed) {
  Process& job = launch({"-w", "1", "-s", "1", "--worker_logs=0"},
                        "if [ $TFMESOS_JOB_NAME = worker ]; then " + kWaits +
                            "; fi; for i in $(seq 30); do echo line $i; done; exit 9");
  ASSERT_TRUE(exits(job, 9));
  EXPECT_THAT(job.standard_error(), HasSubstr("[ps:0] line 30\n"));
  EXPECT_THAT(job.standard_error(), HasSubstr("[ps:0] line 11\n"));
  EXPECT_THAT(job.standard_error(), Not(HasSubstr("[ps:0] line 10\n")));
}

TEST_F(ProgramLaunch, RunsTheInitializerBeforeAndTheFinalizerAfterEachTask) {
  Process& job =
      launch({"-w", "1", "-s", "1", "--initializer=/bin/sh -c 'echo {job_name} 1 >> seen'",
              "--finalizer=/bin/sh -c 'echo \"$TFMESOS_JOB_NAME\" 3 >> seen'"},
             "echo $TFMESOS_JOB_NAME 2 >> seen; "
             "[ $TFMESOS_JOB_NAME = worker ] || exec sleep 1000; "
             "until grep -q 'ps 2' seen; do sleep 0.01; done");
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(sorted_lines(scratch() / "seen"),
              ::testing::ElementsAre("ps 1", "ps 2", "ps 3", "worker 1", "worker 2", "worker 3"));
}

TEST_F(ProgramLaunch, StartsNoTaskWhoseInitializerFailed) {
  Process& job = launch({"-w", "1", "-s", "0", "--initializer=/bin/sh -c 'exit 5'",
                         "--finalizer=/bin/sh -c 'echo finalizer'"},
                        "echo command");
  EXPECT_TRUE(exits(job, 5));
  EXPECT_EQ(job.standard_output(), "");
  EXPECT_TRUE(says(job, "\\[worker:0\\]'s initializer ended with exit code 5"));
}

TEST_F(ProgramLaunch, RunsTheFinalizerOfATaskThatFailedOrWasStopped) {
  Process& job = launch({"-w", "2", "-s", "0", "--finalizer=/bin/sh -c 'echo {task_index} cleans'"},
                        "[ $TFMESOS_TASK_INDEX = 1 ] && exit 4; " + kWaits);
  EXPECT_TRUE(exits(job, 4));
  EXPECT_THAT(job.standard_output(), HasSubstr("[worker:0] 0 cleans\n"));
  EXPECT_THAT(job.standard_output(), HasSubstr("[worker:1] 1 cleans\n"));
}

TEST_F(ProgramLaunch, EndsWithTheCodeOfAFinalizerThatFailed) {
  Process& job = launch({"-w", "1", "-s", "0", "--finalizer=/bin/sh -c 'exit 6'"}, "exit 0");
  EXPECT_TRUE(exits(job, 6));
  EXPECT_TRUE(says(job, "\\[worker:0\\]'s finalizer ended with exit code 6"));
}

TEST_F(ProgramLaunch, TellsAWrongPlaceholderBeforeAnythingRuns) {
  Process& job = launch({}, "touch started", {"{task}"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "COMMAND: .*\\{task\\}.* allowed are \\{ps_hosts\\}"));
  EXPECT_EQ(count_of(job.standard_error(), "\n"), 1U);
  EXPECT_FALSE(std::filesystem::exists(scratch() / "started"));
}

}  // namespace
}  // namespace disttf::test_process
