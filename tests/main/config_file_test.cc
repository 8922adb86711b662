#include "main/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "math/model_spec.h"
#include "run/run_config.h"
#include "tests/data/scratch.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

class Recipe : public testing::Test {
 protected:
  [[nodiscard]] std::string put(const std::string& text, const std::string& name = "r.toml") const {
    const auto path = directory_.path() / name;
    data::test::write(path, data::test::bytes_of(text));
    return path.string();
  }

 private:
  data::test::ScratchDirectory directory_;
};
const std::string kTwoLayers =
    "[[layer]]\ntype = \"relu\"\n[[layer]]\ntype = \"dense\"\nunits = 10\n";

TEST_F(Recipe, HasFlagsAndLayersAndTheTasksOfALaunchGetBoth) {
  const std::string path = put("train_steps = 9\n\n" + kTwoLayers);
  EXPECT_THAT(parse_launch("launch --config " + path).task_arguments,
              testing::UnorderedElementsAre("--train_steps=9", "--model=" + path));
  const roles::RunConfig config =
      parse_task("worker --task_index 0 --config " + path + kHosts).config;
  EXPECT_EQ(config.train_steps, 9U);
  ASSERT_THAT(config.model.layers, testing::SizeIs(2));
  EXPECT_EQ(config.model.layers[1].type, "dense");
}

TEST(Recipes, OfTheRepositoryAreRead) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DISTTF_SOURCE_DIR "/recipes")) {
    if (entry.path().extension() == ".toml") {
      ++count;
      const std::string line = "worker --task_index 0 --config " + entry.path().string() + kHosts;
      const roles::RunConfig config = parse_task(line).config;
      EXPECT_NO_THROW(math::validate(config.model)) << entry.path();
      EXPECT_NO_THROW(roles::validate(config)) << entry.path();
    }
  }
  EXPECT_GE(count, 1U);
}

// Returns the rows that begin with `name`, or with an empty cell below such a row.
std::vector<std::string> rows_of(const std::string& name) {
  std::vector<std::string> rows;
  std::ifstream file(DISTTF_SOURCE_DIR "/recipes/README.md");
  bool is_its = false;
  for (std::string line; std::getline(file, line);) {
    is_its = line.starts_with("| `" + name + "` |") || (is_its && line.starts_with("| |"));
    if (is_its) {
      rows.push_back(line);
    }
  }
  return rows;
}

TEST(Recipes, HaveTheResultsOfFiveSeedsInTheirDocument) {
  static const std::regex kAccuracies(
      R"(\| (0\.\d{4}), (0\.\d{4}), (0\.\d{4}), (0\.\d{4}), (0\.\d{4}) \| (0\.\d{4}) \|)");
  static const std::regex kHash(R"(\| (\d) \| `[0-9a-f]{64}` \|)");
  for (const auto& entry : std::filesystem::directory_iterator(DISTTF_SOURCE_DIR "/recipes")) {
    if (entry.path().extension() != ".toml") {
      continue;
    }
    std::size_t results = 0;
    std::string seeds;
    for (const std::string& row : rows_of(entry.path().filename().string())) {
      std::smatch found;
      if (std::regex_search(row, found, kAccuracies)) {
        ++results;
        double sum = 0;
        for (std::size_t seed = 1; seed <= 5; ++seed) {
          sum += std::stod(found[seed]);
        }
        EXPECT_NEAR(std::stod(found[6]), sum / 5, 0.00005001) << row;
      } else if (std::regex_search(row, found, kHash)) {
        seeds += found[1];
      }
    }
    EXPECT_EQ(results, 1U) << entry.path();
    EXPECT_EQ(seeds, "12345") << entry.path();
  }
}

TEST_F(Recipe, YieldsToTheCommandLine) {
  const std::string path = put("train_steps = 9\n\n" + kTwoLayers);
  const roles::RunConfig config =
      parse_task("worker --task_index 0 --train_steps 8 --model softmax --config " + path + kHosts)
          .config;
  EXPECT_EQ(config.train_steps, 8U);
  EXPECT_EQ(config.model.kind, math::ModelKind::kSoftmax);
  EXPECT_THAT(config.model.layers, testing::IsEmpty());
}

TEST_F(Recipe, IsRefusedWithASentence) {
  const std::string both = put("model = \"mlp\"\n" + kTwoLayers);
  EXPECT_EQ(refusal("worker --task_index 0 --config " + both + kHosts),
            "--config: " + both + " has the key model and a [[layer]]; one of them is allowed");
  const std::string name = put(kTwoLayers, "recipe");
  EXPECT_EQ(refusal("worker --task_index 0 --config " + name + kHosts),
            "--config: " + name + " has a [[layer]], so its name must end in .toml");
  const std::string wrong = put("train_steps = 9\n[[layer]]\ntype = \"lstm\"\n");
  EXPECT_THAT(refusal("worker --task_index 0 --config " + wrong + kHosts),
              testing::HasSubstr("--model: " + wrong + ", line 3: layer 1: type: \"lstm\" is not"));
}

}  // namespace
}  // namespace disttf
