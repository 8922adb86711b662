// Early stopping: all tasks exit with 0 and the same weights, whichever task is killed.
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

// The rate is so high that the loss soon stops improving; on both data sets that takes 100 to 400
// steps.
const Words kPatient = {"--train_steps=2000", "--learning_rate=0.03", "--eval_every=10",
                        "--patience=3", "--print_weights_hash"};
// Slow enough that a task can be killed within the 15 steps before the end.
const Words kSlowly = {"--debug_delay_ms=50", "--log_every=1"};

// Between the best evaluation and the end, when the best evaluation must be remembered.
int step_between(const std::string& output) {
  static const std::regex kSteps(
      R"(Stopped at step (\d+): the validation loss has not fallen below the .* of step (\d+) in 3 evaluation)");
  std::smatch steps;
  EXPECT_TRUE(std::regex_search(output, steps, kSteps)) << output;
  return steps.empty() ? 0 : (std::stoi(steps[1]) + std::stoi(steps[2])) / 2;
}

class EarlyStopping : public ProcessTest {
 protected:
  Process& launch(const Words& flags) {
    Process& job = run("launch", Words{"launch"} + flags + data_flags());
    EXPECT_TRUE(exits(job, kExitDone));
    return job;
  }
  std::string hash_of_launch(const Words& flags) { return weights_hash_in(launch(flags)); }
};

TEST_F(EarlyStopping, IsAtTheSameStepWhateverTheNumberOfPs) {
  const Words three = Words{"--workers=3"} + kPatient;
  const std::string one = hash_of_launch(three);
  ASSERT_EQ(one.size(), 64U);
  for (const char* other : {"--ps=3", "--transport=tcp", "--debug_delay_ms=3"}) {
    EXPECT_EQ(hash_of_launch(three + Words{other}), one) << other;
  }
}

TEST_F(EarlyStopping, IsWhereTheTargetIsReachedAndTheWeightsAreThoseThatReachedIt) {
  const Words flags = {"--workers=2", "--ps=2", "--learning_rate_decay=none",
                       "--print_weights_hash"};
  Process& job = launch(flags + Words{"--eval_every=20", "--target_accuracy=0.7"});
  static const std::regex kStopped(
      R"(Stopped at step (\d+): the validation accuracy 0\.\d+ reached --target_accuracy 0\.7\n)");
  std::smatch step;
  const std::string output = job.standard_output();
  ASSERT_TRUE(std::regex_search(output, step, kStopped)) << output;
  EXPECT_EQ(hash_of_launch(flags + Words{"--train_steps=" + step[1].str()}), weights_hash_in(job));
}

// Intermediate evaluations score the weights that training goes on from; the result is their
// averages.
TEST_F(EarlyStopping, OfAveragesIsTheirsOnAnyNumberOfPs) {
  const Words averaged = Words{"--workers=2", "--ema=0.9"} + kPatient;
  const std::string one = hash_of_launch(averaged);
  EXPECT_EQ(hash_of_launch(averaged + Words{"--ps=2"}), one);
  EXPECT_NE(hash_of_launch(Words{"--workers=2"} + kPatient), one);
}

TEST_F(EarlyStopping, InTheLooserModesEndsAllTasksToo) {
  for (const char* mode : {"--sync_replicas=false", "--replicas_to_aggregate=2"}) {
    Process& job =
        launch({"--workers=3", "--ps=2", "--eval_every=20", "--target_accuracy=0.7", mode});
    EXPECT_NE(job.standard_output().find("Stopped at step"), std::string::npos) << mode;
  }
}

// The tasks that are killed between the best evaluation and the end, and restarted.
struct Loss {
  const char* name;
  bool worker = false;
  bool chief = false;
  bool ps = false;
  friend void PrintTo(const Loss& loss, std::ostream* out) { *out << loss.name; }
};

class EarlyStoppingAfter : public EarlyStopping, public ::testing::WithParamInterface<Loss> {};

TEST_P(EarlyStoppingAfter, IsWhereItWouldHaveBeen) {
  const auto [name, worker, chief, ps] = GetParam();
  Process& undisturbed = launch(Words{"--workers=3"} + kPatient);
  const int step = step_between(undisturbed.standard_output());
  const ClusterOnLoopback cluster({.ps = 2, .workers = 3});
  const Words chief_flags = kPatient + kSlowly + Words{"--save_steps=10"};
  Tasks tasks = run_cluster(cluster, chief_flags);
  ASSERT_TRUE(says(tasks.chief(), "global step: " + std::to_string(step) + ","));
  std::vector<Process*> killed_ones;
  const auto kill = [&](Process& process) {
    process.send(SIGKILL);
    killed_ones.push_back(&process);
  };
  if (worker) kill(*tasks.trainers[1]);
  if (chief) kill(tasks.chief());
  if (ps) kill(*tasks.ps[0]);
  for (Process* each : killed_ones) {
    ASSERT_TRUE(killed(*each, SIGKILL));
  }
  if (worker)
    tasks.trainers[1] =
        &run_task(cluster, Job::kWorker, 1, kSlowly + Words{"--print_weights_hash"});
  if (chief) tasks.trainers[0] = &run_task(cluster, Job::kWorker, 0, chief_flags);
  if (ps) tasks.ps[0] = &run_task(cluster, Job::kPs, 0);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  for (Process* trainer : tasks.trainers) {
    EXPECT_EQ(weights_hash_in(*trainer), weights_hash_in(undisturbed));
  }
}

INSTANTIATE_TEST_SUITE_P(
    TheLoss, EarlyStoppingAfter,
    ::testing::Values(Loss{.name = "OfAWorker", .worker = true},
                      Loss{.name = "OfTheChief", .chief = true}, Loss{.name = "OfAPs", .ps = true},
                      Loss{.name = "OfTheChiefAndAPs", .chief = true, .ps = true}),
    [](const auto& param_info) { return param_info.param.name; });

// All tasks are lost: the checkpoints contain all that is needed.
TEST_F(EarlyStopping, OfARunThatGoesOnFromACheckpointIsWhereItWouldHaveBeen) {
  const Words three = Words{"--workers=3"} + kPatient;
  Process& undisturbed = launch(three);
  const int step = step_between(undisturbed.standard_output());
  const Words saving = {"--train_dir=" + (scratch() / "train").string(), "--save_steps=1"};
  Process& first = run("first", Words{"launch"} + three + kSlowly + saving + data_flags());
  ASSERT_TRUE(says(first, "global step: " + std::to_string(step) + ","));
  first.send(SIGKILL);
  ASSERT_TRUE(killed(first, SIGKILL));
  EXPECT_EQ(hash_of_launch(three + saving + Words{"--ps=2"}), weights_hash_in(undisturbed));
  // A further start finds the run finished and does not train on, unless requested.
  EXPECT_EQ(hash_of_launch(three + saving), weights_hash_in(undisturbed));
  EXPECT_NE(
      hash_of_launch(Words{"--workers=3", "--print_weights_hash", "--train_steps=500"} + saving),
      weights_hash_in(undisturbed));
}

TEST_F(EarlyStopping, NeedsEvaluationsOnTheWay) {
  Process& job = run("launch", {"launch", "--workers=2", "--patience=3"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--patience: 3 is not allowed without --eval_every"));
}

TEST_F(EarlyStopping, IsNotOfElasticRuns) {
  Process& job = run("launch", {"launch", "--workers=2", "--min_workers=1", "--eval_every=10",
                                "--target_accuracy=0.5"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--target_accuracy: 0.5 is not allowed with --min_workers"));
}

// Output of a run's evaluations: --metrics_file, --print_classes.

using nlohmann::json;

class Results : public ProcessTest {
 protected:
  Process& launch(const Words& others) {
    return run("launch", Words{"launch", "--workers=2", "--train_steps=40", "--eval_every=10"} +
                             others + data_flags());
  }
  [[nodiscard]] std::string path() const { return (scratch() / "metrics.jsonl").string(); }
  [[nodiscard]] std::vector<json> lines() const {
    std::vector<json> all;
    std::ifstream file(path());
    for (std::string line; std::getline(file, line);) {
      all.push_back(json::parse(line));
    }
    return all;
  }
};

TEST_F(Results, HaveALineForEachEvaluationAndTheLastOneHasTheClasses) {
  Process& job = launch({"--metrics_file=" + path()});
  ASSERT_TRUE(exits(job, kExitDone));
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 4U);
  for (std::size_t each = 0; each < 4; ++each) {
    EXPECT_EQ(all[each]["step"], 10 * (each + 1));
    EXPECT_EQ(all[each]["result"], each == 3);
  }
  std::uint64_t images = 0;
  for (const json& row : all[3]["confusion"]) {
    for (const json& count : row) {
      images += count.get<std::uint64_t>();
    }
  }
  EXPECT_EQ(images, 10'000U);
}

TEST_F(Results, OfALaterRunAreAddedBehindThoseOfTheOneBefore) {
  ASSERT_TRUE(exits(launch({"--metrics_file=" + path()}), kExitDone));
  ASSERT_TRUE(exits(launch({"--metrics_file=" + path()}), kExitDone));
  EXPECT_EQ(lines().size(), 8U);
}

TEST_F(Results, OfARunThatGoesOnFromACheckpointAreOfTheSteps) {
  const Words flags = {"--eval_every=15", "--metrics_file=" + path(), "--save_steps=10",
                       "--train_dir=" + (scratch() / "train").string()};
  const auto launch_to = [&](const std::string& steps) -> Process& {
    return run("launch", Words{"launch", "--workers=2", steps} + flags + data_flags());
  };
  ASSERT_TRUE(exits(launch_to("--train_steps=20"), kExitDone));
  ASSERT_TRUE(exits(launch_to("--train_steps=40"), kExitDone));
  std::vector<std::uint64_t> steps;
  for (const json& line : lines()) {
    steps.push_back(line["step"]);
  }
  EXPECT_THAT(steps, testing::ElementsAre(15, 20, 30, 40));
}

TEST_F(Results, ThatCannotBeWrittenAreToldOnceAndTrainingGoesOn) {
  Process& job = launch({"--metrics_file=/dev/full"});
  EXPECT_TRUE(says(job, "--metrics_file: /dev/full cannot be written: No space left on device"));
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "accuracy: "));
}

TEST_F(Results, OfEachClassArePrintedWhereThatIsAskedFor) {
  Process& job = launch({"--print_classes"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "class +images +precision +recall"));
  EXPECT_TRUE(says(job, "class +judged to be"));
}

}  // namespace
}  // namespace disttf::test_process
