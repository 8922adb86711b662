// `disttf launch` as the supervisor of its tasks: which tasks it restarts.
#include <algorithm>
#include <csignal>
#include <ostream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

// Long enough that a task can be killed in the middle of it, and not at its end.
const Words kRun = {"--train_steps=150", "--workers=3", "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};

class LaunchRestart : public ProcessTest {
 protected:
  Process& launch(const std::string& name, const Words& arguments) {
    return run(name, Words{"launch"} + arguments + data_flags());
  }

  // Sends a signal to the process of a task, "worker:1", after `starts` starts.
  static ::testing::AssertionResult send(int signal, Process& job, const std::string& task,
                                         std::size_t starts = 1) {
    // Waits for its first line: from here on the command line is its own, not that of the forked
    // parent.
    if (auto result = says_times(job, starts, "\\[" + task + "\\] .*Started server"); !result) {
      return result;
    }
    if (const auto pid = pid_of_task(job.pid(), task)) {
      kill(*pid, signal);
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << job.name() << " has no child " << task;
  }

  static std::string restarted(const std::string& task, const std::string& count) {
    return "disttf launch: \\[" + task +
           "\\] was killed by signal 9 \\(Killed\\); starting it again \\(" + count +
           " restarts\\)";
  }

  void expect_undisturbed(Process& job) {
    ASSERT_TRUE(exits(job, kExitDone));
    Process& undisturbed = launch("undisturbed", kRun);
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    EXPECT_EQ(weights_hash_in(job), weights_hash_in(undisturbed));
    EXPECT_EQ(job.standard_output(), undisturbed.standard_output());
  }
};

// Worker 0 is the chief.
class LaunchRestartKilled : public LaunchRestart,
                            public ::testing::WithParamInterface<std::string> {};

TEST_P(LaunchRestartKilled, GivesTheBitsOfAnUndisturbedRun) {
  Process& job = launch("launch", kRun + kSlowly);
  ASSERT_TRUE(says(job, "\\[worker:[01]\\] .*global step: 20,"));
  ASSERT_TRUE(send(SIGKILL, job, GetParam()));
  EXPECT_TRUE(says(job, restarted(GetParam(), "1 of 10")));
  // The address is the same, so other tasks need no notification.
  EXPECT_TRUE(says_times(job, 2, "\\[" + GetParam() + "\\] .*Started server"));
  expect_undisturbed(job);
  const std::string address =
      "\\[" + GetParam() + "\\] .*Started server with target: (tcp://127.0.0.1:[0-9]+)\n";
  EXPECT_EQ(count_of(job.standard_error(), captured(job.standard_error(), address)), 2U);
}

INSTANTIATE_TEST_SUITE_P(Task, LaunchRestartKilled,
                         ::testing::Values("worker:1", "worker:0", "ps:0"), [](const auto& each) {
                           return each.param == "worker:1"   ? "Worker"
                                  : each.param == "worker:0" ? "Chief"
                                                             : "Ps";
                         });

TEST_F(LaunchRestart, TheChiefAsATaskOfItsOwn) {
  Process& job = launch(
      "launch",
      Words{"--train_steps=150", "--workers=2", "--chief", "--print_weights_hash"} + kSlowly);
  ASSERT_TRUE(says(job, "\\[chief:0\\] .*global step: 20,"));
  ASSERT_TRUE(send(SIGKILL, job, "chief:0"));
  EXPECT_TRUE(says(job, restarted("chief:0", "1 of 10")));
  expect_undisturbed(job);  // a chief task trains like a worker
}

TEST_F(LaunchRestart, ALocalRunOfTrain) {
  Process& job = run("train", Words{"train", "--train_steps=100"} + kSlowly + data_flags());
  ASSERT_TRUE(says(job, "\\[worker:0\\] .*global step: 20,"));
  ASSERT_TRUE(send(SIGKILL, job, "worker:0"));
  EXPECT_TRUE(says(job, restarted("worker:0", "1 of 10")));
  EXPECT_TRUE(exits(job, kExitDone));
}

TEST_F(LaunchRestart, EndsWhenTheRestartsAreUsedUp) {
  Process& job = launch("launch", endless() + Words{"--max_restarts=2"});
  for (const std::size_t starts : {1U, 2U, 3U}) {
    ASSERT_TRUE(send(SIGKILL, job, "worker:1", starts));
  }
  EXPECT_TRUE(exits(job, kExitLostPeers));
  EXPECT_TRUE(says(job, restarted("worker:1", "1 of 2")));
  EXPECT_TRUE(says(job, restarted("worker:1", "2 of 2")));
  EXPECT_TRUE(says(job,
                   "\\[worker:1\\] was killed by signal 9 \\(Killed\\) after 2 of 2 restarts; "
                   "stopping the others"));
}

TEST_F(LaunchRestart, RestartsATaskThatAnotherProcessHasStopped) {
  Process& job = launch("launch", Words{"--train_steps=100"} + kSlowly);
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*global step: 20,"));
  ASSERT_TRUE(send(SIGTERM, job, "worker:1"));
  EXPECT_TRUE(says(job, "\\[worker:1\\] ended with exit code 143; starting it again"));
  EXPECT_TRUE(exits(job, kExitDone));
}

TEST_F(LaunchRestart, NeverStartsAgainWhatFailedForGood) {
  Process& job = launch("launch", {"--optimizer=sgd", "--learning_rate=1e6"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_EQ(count_of(job.standard_error(), "starting it again"), 0U);
}

struct Signalled {
  int signal;
  int exit_code;
};

void PrintTo(const Signalled& signalled, std::ostream* out) { *out << signalled.exit_code; }

class LaunchRestartStopped : public LaunchRestart,
                             public ::testing::WithParamInterface<Signalled> {};

// By the third time the delay is at least 0.2 s. If the machine is so busy that the delay ends
// before the signal comes, the task is stopped like any other.
TEST_P(LaunchRestartStopped, EndsAtOnceWhileATaskWaitsToBeStartedAgain) {
  Process& job = launch("launch", endless());
  for (const std::size_t starts : {1U, 2U, 3U}) {
    ASSERT_TRUE(send(SIGKILL, job, "worker:1", starts));
  }
  ASSERT_TRUE(says(job, restarted("worker:1", "3 of 10")));
  const std::vector<pid_t> children = children_of(job.pid());
  job.send(GetParam().signal);
  EXPECT_TRUE(exits(job, GetParam().exit_code));
  EXPECT_TRUE(wait_until_gone(children));
  const std::string text = job.standard_error();
  const std::size_t stopped = text.find("stopped by SIG");
  ASSERT_NE(stopped, std::string::npos);
  EXPECT_EQ(count_of(text.substr(stopped), "Started server"), 0U) << "after the signal";
  EXPECT_EQ(count_of(text, "killing it"), 0U);
}

INSTANTIATE_TEST_SUITE_P(By, LaunchRestartStopped,
                         ::testing::Values(Signalled{SIGINT, kExitInterrupted},
                                           Signalled{SIGTERM, kExitTerminated}),
                         [](const auto& each) {
                           return each.param.signal == SIGINT ? "Interrupt" : "Termination";
                         });

TEST_F(LaunchRestart, LeavesNoRestartedChildBehindWhenItIsKilled) {
  Process& job = launch("launch", endless());
  ASSERT_TRUE(send(SIGKILL, job, "worker:1"));
  ASSERT_TRUE(says_times(job, 2, "\\[worker:1\\] .*Started server"));
  const std::vector<pid_t> children = children_of(job.pid());
  ASSERT_EQ(children.size(), 3U);
  job.send(SIGKILL);
  EXPECT_TRUE(killed(job, SIGKILL));
  EXPECT_TRUE(wait_until_gone(children));
}

}  // namespace
}  // namespace disttf::test_process
