// Output of a run's evaluations: --metrics_file, --print_classes.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

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
