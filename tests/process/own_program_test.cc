// A task with a user's own program, `disttf worker --program -- COMMAND`: what the program gets,
// and what happens when it, the task or their supervisor ends. The trainers here wait for a ps that
// is not started, so that these tests need no program that takes part in a run.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "roles/launch/core/supervisor.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A script that waits to be ended.
const std::string kLasts = "echo ready; while :; do sleep 1000 & wait; done";
constexpr const char* kSecret = "an example secret of at least 32 bytes";

class OwnProgram : public ProcessTest {
 protected:
  // Runs worker 0 with a shell script as its program.
  Process& work(const std::string& script, const Words& flags = {}, const Words& arguments = {}) {
    return run("worker",
               Words{"worker", "--task_index=0", "--program"} + cluster_.host_flags() + flags +
                   Words{"--", "/bin/sh", "-c", script, "sh"} + arguments,
               {{"DISTTF_SECRET", kSecret}});
  }
  // The processes that a supervisor has started, once both handle signals.
  static std::vector<pid_t> task_and_program(Process& job) {
    EXPECT_TRUE(says(job, "ready"));
    EXPECT_TRUE(says(job, "Started server"));
    const std::vector<pid_t> found = children_of(job.pid());
    EXPECT_EQ(found.size(), 2U);
    return found;
  }
  // The words of a launch of two workers with tests/support/program_client.py. Worker 1 saves to
  // the file "saved".
  static Words launch_words(const Words& flags, const std::string& of_worker_1,
                            const std::string& of_the_chief) {
    const std::string client = (source_directory() / "tests/support/program_client.py").string();
    return Words{"launch", "--ps=1", "--workers=2", "--program"} + flags +
           Words{"--", "/bin/sh", "-c",
                 "if [ {task_index} = 1 ]; then exec python3 '" + client + "' saves=saved " +
                     of_worker_1 + "; else exec python3 '" + client + "' " + of_the_chief + "; fi"};
  }
  static void kill_task_of(const Process& launch, const std::string& task) {
    const auto pid = pid_of_task(launch.pid(), task);
    ASSERT_TRUE(pid) << task;
    kill(*pid, SIGKILL);
  }
  // The number that a script has written to the file "pid".
  [[nodiscard]] pid_t written_pid() const {
    pid_t pid = -1;
    std::ifstream(scratch() / "pid") >> pid;
    return pid;
  }

  ClusterOnLoopback cluster_;
};

TEST_F(OwnProgram, GetsItsRoleAndASocketButNoSecret) {
  Process& job =
      work("[ \"$TFMESOS_JOB_NAME $TFMESOS_TASK_INDEX\" = 'worker 0' ] && [ \"$1\" = '" +
               cluster_.list(net::Job::kPs) + "' ] && [ -n \"$TF_CONFIG\" ] && " +
               "[ $PYTHONFAULTHANDLER$PYTHONUNBUFFERED = 11 ] && "
               "[ -S /proc/self/fd/$DISTTF_PROGRAM_FD ] && [ -z \"$DISTTF_PROGRAM_SPARE\" ] && "
               "[ -z \"$DISTTF_SECRET\" ] && echo all there; " +
               kLasts,
           {}, {"{ps_hosts}"});
  EXPECT_TRUE(says(job, "all there"));
}

// cuBLAS reads it before the program's first line runs; one that is set stays, as does one of the
// image in which an engine runs the task.
TEST_F(OwnProgram, GetsTheWorkspaceOfDeterministicProductsOnAGpu) {
  Process& job = work("echo workspace $CUBLAS_WORKSPACE_CONFIG; " + kLasts);
  EXPECT_TRUE(says(job, "workspace :4096:8"));
  Process& other = run_program(
      "/usr/bin/env",
      Words{"CUBLAS_WORKSPACE_CONFIG=:16:8", disttf_binary(), "worker", "--task_index=1",
            "--insecure", "--program"} +
          cluster_.host_flags() +
          Words{"--", "/bin/sh", "-c", "echo workspace $CUBLAS_WORKSPACE_CONFIG; " + kLasts});
  EXPECT_TRUE(says(other, "workspace :16:8"));
}

// The kernel shows a process's environment to other processes of its user; not here.
TEST_F(OwnProgram, CannotReadTheSecretOfItsSupervisor) {
  if (geteuid() == 0) {
    GTEST_SKIP() << "root may read it";
  }
  Process& job = work("cat /proc/$PPID/environ && echo readable; " + kLasts);
  ASSERT_TRUE(says(job, "ready"));
  EXPECT_THAT(job.standard_output(), Not(HasSubstr("readable")));
}

TEST_F(OwnProgram, EndsTheTaskWhenItExitsEarly) {
  Process& job = work("exit 3");
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(
      says(job, "the program exited with 3 before the run was over; its last lines have the"));
}

TEST_F(OwnProgram, IsGivenUpWhenItIsKilledAgainAndAgain) {
  Process& job = work("echo started; kill -SEGV $$");
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job, "was killed by signal 11 .* 3 times without a step; parameters are read"));
  EXPECT_EQ(count_of(job.standard_output(), "started\n"), 3U);
}

TEST_F(OwnProgram, IsStartedAgainWhenItIsKilled) {
  Process& job = work("if [ -e was ]; then echo second; " + kLasts + "; fi; : > was; kill -9 $$");
  EXPECT_TRUE(says(job, "second"));
  EXPECT_TRUE(says(job, "the program was killed by signal 9 .*; starting it again"));
}

// An answer in time is ten times as far away before it has joined.
TEST_F(OwnProgram, PrintsItsStacksAndIsStartedAgainWhenItDoesNotJoin) {
  Process& job =
      run("worker",
          Words{"worker", "--task_index=0", "--program", "--program_timeout_secs=1"} +
              cluster_.host_flags() + Words{"--", "python3", "-c", "import time\ntime.sleep(1000)"},
          {{"DISTTF_SECRET", kSecret}});
  EXPECT_TRUE(
      says(job, "The program has not told its variables, .* joins, for 10 s: it counts as"));
  EXPECT_TRUE(says(job, "Fatal Python error: Aborted"));
  EXPECT_TRUE(says(job, "the program was killed by signal 6 .*; starting it again"));
}

TEST_F(OwnProgram, TakesWhatItHasStartedWithIt) {
  Process& job = work("if [ -e was ]; then " + kLasts +
                      "; fi; : > was; sleep 1000 & echo $! > pid; kill -9 $$");
  ASSERT_TRUE(says(job, "ready"));
  ASSERT_GT(written_pid(), 0);
  EXPECT_TRUE(wait_until_gone({written_pid()}));
}

TEST_F(OwnProgram, MustBeAProgram) {
  Process& job = run("worker", Words{"worker", "--task_index=0", "--insecure", "--program"} +
                                   cluster_.host_flags() + Words{"--", "disttf-no-such-program"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "COMMAND: \"disttf-no-such-program\" is not an executable program"));
}

// A kernel that does not run the file: it has no interpreter.
TEST_F(OwnProgram, MustBeExecutable) {
  const std::filesystem::path file = scratch() / "program";
  std::ofstream(file) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  Process& job = run("worker", Words{"worker", "--task_index=0", "--insecure", "--program"} +
                                   cluster_.host_flags() + Words{"--", file.string()});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job, "exited with 126 before the run was over: its file cannot be executed"));
}

TEST_F(OwnProgram, EndsAfterTheTaskOnASignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Process& job = work(kLasts);
    const std::vector<pid_t> both = task_and_program(job);
    job.send(signal);
    EXPECT_TRUE(exits(job, 128 + signal));
    EXPECT_TRUE(wait_until_gone(both));
    EXPECT_THAT(job.standard_error(), Not(HasSubstr("the program")));
  }
}

// `launch` sends this signal some time after the run has ended. This trainer cannot take part any
// more, as one that was started again too late.
TEST_F(OwnProgram, EndsWithARunThatItsTaskCannotRejoin) {
  Process& job = work(kLasts);
  const std::vector<pid_t> processes = task_and_program(job);
  job.send(roles::kRunOverSignal);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_TRUE(says(job, "the run ended before this task could rejoin it"));
  EXPECT_TRUE(wait_until_gone(processes));
}

TEST_F(OwnProgram, IsKilledIfItDoesNotTakeTheSignal) {
  Process& job = work("trap '' TERM; " + kLasts);
  const std::vector<pid_t> both = task_and_program(job);
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_TRUE(wait_until_gone(both));
}

// As a shell with job control does with what it starts.
TEST_F(OwnProgram, ReceivesSignalsInAnotherProcessGroup) {
  Process& job = run("worker",
                     Words{"worker", "--task_index=0", "--program"} + cluster_.host_flags() +
                         Words{"--", "python3", "-c",
                               "import os, time\n"
                               "ends = os.pipe()\n"
                               "child = os.fork()\n"
                               "if child == 0:\n"
                               "    os.close(ends[1])\n"
                               "    os.read(ends[0], 1)\n"  // until its parent has ended
                               "    os._exit(0)\n"
                               "os.setpgid(child, child)\n"
                               "os.setpgid(0, child)\n"
                               "print('ready', flush=True)\n"
                               "time.sleep(1000)\n"},
                     {{"DISTTF_SECRET", kSecret}});
  const std::vector<pid_t> both = task_and_program(job);
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_TRUE(wait_until_gone(both));
}

TEST_F(OwnProgram, DiesWithASupervisorThatIsKilled) {
  Process& job = work(kLasts);
  const std::vector<pid_t> both = task_and_program(job);
  job.send(SIGKILL);
  EXPECT_TRUE(killed(job, SIGKILL));
  EXPECT_TRUE(wait_until_gone(both));
}

TEST_F(OwnProgram, EndsWithATaskThatIsKilledAsItsSupervisorDoes) {
  Process& job = work(kLasts);
  const std::vector<pid_t> both = task_and_program(job);
  for (const pid_t each : both) {
    const std::vector<std::string> words = command_line_of(each);
    // The task has this file's name, the program its own.
    if (!words.empty() && words.front() == "disttf") {
      kill(each, SIGKILL);
    }
  }
  EXPECT_TRUE(killed(job, SIGKILL));
  EXPECT_TRUE(wait_until_gone(both));
}

TEST_F(OwnProgram, FailsALaunchWithItsSentence) {
  Process& job = run("launch", {"launch", "--ps=1", "--workers=2", "--program", "--", "/bin/sh",
                                "-c", "[ {task_index} = 1 ] && exit 3; sleep 1000"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job, "\\[worker:1\\] .*the program exited with 3 before the run was over"));
}

// Both programs' last step is over only after that of worker 1 was killed and started again.
TEST_F(OwnProgram, RunsWhatFollowsItsLoopAlthoughItIsKilledAsTheRunEnds) {
  ASSERT_EQ(mkfifo((scratch() / "fifo").c_str(), 0600), 0);
  Process& job = run("launch", launch_words({"--train_steps=5", "--program_spare=false"},
                                            "die=4 once=died opens=fifo", "wait=4:fifo"));
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "\\[worker:1\\] .*was killed by signal 9 .*; starting it again"));
  EXPECT_TRUE(std::filesystem::exists(scratch() / "saved"));
}

// The chief is lost, and then the only ps, before the new chief has a snapshot. The program of the
// new chief has computed by then, so its model has other parameters than at first.
TEST_F(OwnProgram, BeginsTheRunAnewFromItsFirstValues) {
  const Words flags = {"--train_steps=5", "--print_weights_hash", "--log_every=1"};
  Process& undisturbed = run("undisturbed", launch_words(flags, "", ""));
  ASSERT_TRUE(exits(undisturbed, kExitDone));
  const std::string fifo = (scratch() / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Process& job = run("launch", launch_words(flags, "", "moves=1 wait=3:fifo"));
  ASSERT_TRUE(says(job, "training step 3 done"));
  kill_task_of(job, "worker:0");
  ASSERT_TRUE(says(job, "\\[worker:0\\] .*Training begins at global step 3"));
  kill_task_of(job, "ps:0");
  const std::fstream opened(fifo);  // to read and write, which does not wait for the program
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "The run goes on from global step 0"));
  EXPECT_EQ(weights_hash_in(job), weights_hash_in(undisturbed));
}

TEST_F(OwnProgram, FailsWithAPacketThatIsNoMessage) {
  Process& empty = run("launch", launch_words({"--train_steps=5"}, "packet=2:0", ""));
  EXPECT_TRUE(exits(empty, kExitError));
  EXPECT_TRUE(says(empty, "the program sent a packet of 0 bytes"));
  Process& many = run("launch", launch_words({"--train_steps=5"}, "packet=2:6", ""));
  EXPECT_TRUE(exits(many, kExitError));
  EXPECT_TRUE(says(many, "sent a packet with more than 2 descriptors, allowed is none"));
}

// Its socket is full then, and the task must not wait for it alone.
TEST_F(OwnProgram, IsFoundToHangAlthoughItReadsNothing) {
  Process& job = run("launch", launch_words({"--train_steps=5", "--program_timeout_secs=1"},
                                            "flood=2 once=flooded", ""));
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "has not answered COMPUTE of step 2 .*: it counts as hung"));
}

TEST_F(OwnProgram, IsRefusedWithAnotherNumberOfRowsThanTheChiefs) {
  Process& job = run("launch", launch_words({"--train_steps=1000000"}, "count=300", ""));
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job,
                   "\\[worker:1\\] .*the number of rows of the program's data is 300, of that of "
                   "the chief's program it is 600"));
}

TEST_F(OwnProgram, IsNamedByTheChiefIfItMayComputeOtherBits) {
  Process& job = run("launch", launch_words({"--train_steps=1000000"}, "threads=2", "threads=1"));
  EXPECT_TRUE(says(job,
                   "\\[worker:0\\] .* W The program of worker:1 may compute other bits than "
                   "that of worker:0, the chief: threads is 2, it is 1 there"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
}

// A process of launch's that it freezes or kills is the supervisor; its task and its program are
// frozen and killed with it.
TEST_F(OwnProgram, IsKilledWithALaunchThatDoesNotWait) {
  Process& job = run("launch", {"launch", "--ps=1", "--workers=1", "--program", "--", "/bin/sh",
                                "-c", "trap '' TERM; sleep 1000 & echo $! > pid; " + kLasts});
  ASSERT_TRUE(says(job, "ready"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  ASSERT_GT(written_pid(), 0);
  EXPECT_TRUE(wait_until_gone({written_pid()}));
}

}  // namespace
}  // namespace disttf::test_process
