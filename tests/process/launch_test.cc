// `disttf launch`: the whole job on one machine, and how it ends.
#include <csignal>
#include <ostream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

class Launch : public ProcessTest {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch", Words{"launch"} + arguments + data_flags());
  }
  // Starts a launch and waits until its tasks train.
  Process& launch_endless(const Words& arguments = {}) {
    Process& job = launch(endless() + arguments);
    EXPECT_TRUE(says(job, "\\[worker:1\\] .*training step 3 done"));
    return job;
  }
};

double wanted(double of_mnist, double of_digits) { return has_mnist() ? of_mnist : of_digits; }

TEST_F(Launch, ReachesTheAccuracyOfTheTutorialsWithAllDefaults) {
  Process& job = launch({"--workers=2", "--ps=1"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_GE(accuracy_in(job), wanted(0.975, 0.97));
}

TEST_F(Launch, PrintsTheSameDigitsOnEveryRun) {
  const Words arguments = {"--workers=2", "--ps=1", "--train_steps=300", "--eval_every=100"};
  Process& first = launch(arguments);
  ASSERT_TRUE(exits(first, kExitDone));
  Process& second = launch(arguments);
  ASSERT_TRUE(exits(second, kExitDone));
  EXPECT_EQ(first.standard_output(), second.standard_output());
}

TEST_F(Launch, TrainsSoftmaxToItsAccuracy) {
  Process& job = launch({"--model=softmax"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_GE(accuracy_in(job), wanted(0.92, 0.88));
}

TEST_F(Launch, ReachesTheAsynchronousAccuracy) {
  Process& job = launch({"--sync_replicas=false"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_GE(accuracy_in(job), wanted(0.97, 0.965));
}

// The built-in digits separate models as MNIST does; this also runs where MNIST is installed.
TEST_F(Launch, TheBuiltInDigitsAreAboutAsHardAsMnist) {
  const auto accuracy = [this](const std::string& model) {
    Process& job = run(model, {"launch", "--model=" + model, "--dataset=digits", data_dir_flag()});
    EXPECT_TRUE(exits(job, kExitDone));
    return std::stod(captured(job.standard_output(), "Digits accuracy: (0\\.[0-9]{4})\n"));
  };
  const double mlp = accuracy("mlp");
  EXPECT_GE(mlp, 0.97);
  EXPECT_LE(mlp, 0.98);
  const double softmax = accuracy("softmax");
  EXPECT_GE(softmax, 0.88);
  EXPECT_LE(softmax, 0.92);
}

TEST_F(Launch, PrintsResultsAndNothingElseOnStandardOutput) {
  Process& job = launch({"--train_steps=20", "--eval_every=10", "--print_weights_hash"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(
      job.standard_output(),
      ::testing::MatchesRegex("After 10 training step\\(s\\), validation cross entropy = [0-9.]+, "
                              "test accuracy = 0\\.[0-9]{4}\n"
                              "After 20 training step\\(s\\), validation cross entropy = [0-9.]+\n"
                              "Weights SHA-256: [0-9a-f]{64}\n" +
                              data_name() + " accuracy: 0\\.[0-9]{4}\n"));
}

TEST_F(Launch, NamesTheTaskBeforeEachLineOfItsLog) {
  Process& job = launch({"--train_steps=5", "--ps=2", "--workers=1", "--chief"});
  ASSERT_TRUE(exits(job, kExitDone));
  for (const char* name : {"ps:0", "ps:1", "chief:0", "worker:0"}) {
    EXPECT_THAT(job.standard_error(), ::testing::HasSubstr(std::string("[") + name + "] "));
  }
  EXPECT_EQ(count_of(job.standard_error(), "\r"), 0U) << "a pipe must not get a live line";
}

TEST_F(Launch, PassesAnInterruptOnAndEndsWith130) {
  Process& job = launch_endless();
  const std::vector<pid_t> children = children_of(job.pid());
  ASSERT_EQ(children.size(), 3U);
  job.send(SIGINT);
  EXPECT_TRUE(exits(job, kExitInterrupted));
  EXPECT_TRUE(wait_until_gone(children));
  // A worker may learn of the signal from its ps before it gets its own.
  for (const char* name : {"ps:0", "worker:0", "worker:1"}) {
    EXPECT_TRUE(says(job, "\\[" + std::string(name) + "\\] .* E .*stopped by SIGINT"));
  }
}

TEST_F(Launch, PassesATerminationOnAndEndsWith143) {
  Process& job = launch_endless();
  const std::vector<pid_t> children = children_of(job.pid());
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_TRUE(wait_until_gone(children));
}

TEST_F(Launch, LeavesNoChildBehindWhenItIsKilled) {
  Process& job = launch_endless();
  const std::vector<pid_t> children = children_of(job.pid());
  ASSERT_EQ(children.size(), 3U);
  job.send(SIGKILL);
  EXPECT_TRUE(killed(job, SIGKILL));
  EXPECT_TRUE(wait_until_gone(children));
}

// One test for each child that dies: the ps is started first.
class LaunchChildKilled : public Launch, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(LaunchChildKilled, EndsWith138AndStopsTheOthersWhereNothingIsRestarted) {
  Process& job = launch_endless({"--restart=never"});
  const std::vector<pid_t> children = children_of(job.pid());
  ASSERT_EQ(children.size(), 3U);
  kill(children[GetParam()], SIGKILL);
  EXPECT_TRUE(exits(job, kExitLostPeers));
  EXPECT_TRUE(wait_until_gone(children));
  const std::string name = std::vector<std::string>{"ps:0", "worker:0", "worker:1"}[GetParam()];
  EXPECT_TRUE(says(job, "disttf launch: \\[" + name +
                            "\\] was killed by signal 9 \\(Killed\\); stopping the others"));
}

INSTANTIATE_TEST_SUITE_P(Each, LaunchChildKilled, ::testing::Values(0, 1, 2));

TEST_F(Launch, EndsWithTheExitCodeOfTheChildThatFailed) {
  const ReservedPort closed;
  Process& job = run("launch", {"launch", "--dataset=mnist", "--data_dir=none",
                                "--data_url=http://127.0.0.1:" + std::to_string(closed.number())});
  EXPECT_TRUE(exits(job, kExitBadData));
  EXPECT_TRUE(says(job,
                   "disttf launch: \\[worker:[01]\\] ended with exit code 3; stopping the "
                   "others"));
}

// An invalid flag for tasks is reported once, before any task starts.
TEST_F(Launch, TellsAWrongFlagItself) {
  Process& job = run("launch", {"launch", "--data_url=gopher://127.0.0.1/"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--data_url: .*gopher"));
  EXPECT_EQ(count_of(job.standard_error(), "\n"), 1U);
}

TEST_F(Launch, EndsWithASentenceWhenTrainingDiverges) {
  Process& job = launch({"--optimizer=sgd", "--learning_rate=1e6"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job, "training has diverged; a lower --learning_rate than 1e\\+06 may help"));
  EXPECT_EQ(job.standard_output(), "");
}

// The last layer's biases recover, so the loss is that of guessing again; the weights are huge.
TEST_F(Launch, EndsWithASentenceWhenItHasDivergedAndOnlyGuesses) {
  Process& job = launch({"--optimizer=sgd", "--learning_rate=1000", "--train_steps=300"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job, "training has diverged; a lower --learning_rate than 1000 may help"));
  EXPECT_EQ(job.standard_output(), "");
}

// Adam at ten times its rate: in the first steps the loss is several times that of guessing.
TEST_F(Launch, ALossThatLeapsAndComesBackIsNoFailure) {
  Process& job = launch({"--learning_rate=0.1", "--train_steps=300", "--log_every=1"});
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "training step [1-9] done .*loss: ([6-9]|[1-9][0-9])\\."))
      << "the loss did not leap";
  EXPECT_GT(accuracy_in(job), 0.5);
}

// A softmax model at any rate is a perceptron at least: its outputs are saturated and mostly right.
TEST_F(Launch, ALossFarAboveGuessingIsNoFailureWhereTheModelIsMostlyRight) {
  Process& job =
      launch({"--model=softmax", "--optimizer=sgd", "--learning_rate=1e6", "--train_steps=300"});
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_GT(std::stod(captured(job.standard_output(), "cross entropy = ([0-9.e+]+)")), 100);
  EXPECT_GT(accuracy_in(job), 0.5);
}

// Too few steps at too low a rate: there is a result, and a warning about its quality.
TEST_F(Launch, WarnsOfAModelThatHasLearntNextToNothing) {
  Process& job = launch({"--learning_rate=1e-9", "--train_steps=2"});
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job,
                   " W the validation cross entropy is 2\\.[0-9]+ after step 2, that of "
                   "guessing 2\\.303: the model has learnt next to nothing"));
}

// `disttf launch` as the supervisor of its tasks: which tasks it restarts.

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
