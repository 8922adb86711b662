// `disttf launch`: the whole job on one machine, and how it ends.
#include <algorithm>
#include <csignal>

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

}  // namespace
}  // namespace disttf::test_process
