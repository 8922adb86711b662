// `disttf predict`: the saved model gives the outputs that the run reported.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

class Predict : public ProcessTest {
 protected:
  [[nodiscard]] std::string train_dir() const { return (scratch() / "run").string(); }

  // Trains for a moment and keeps the model.
  Process& train(const Words& flags, const char* steps = "--train_steps=60") {
    Process& job =
        run("launch", Words{"launch", "--workers=2", "--train_dir=" + train_dir(), steps} + flags);
    EXPECT_TRUE(exits(job, kExitDone));
    return job;
  }

  // Writes a table in which x determines one of three classes.
  std::string put_table(const std::string& name, std::size_t rows, bool is_shuffled) {
    const std::string path = (scratch() / name).string();
    std::ofstream file(path);
    file << (is_shuffled ? "heap,remark,y,x\n" : "x,y,heap\n");
    for (std::size_t row = 0; row < rows; ++row) {
      const std::string x = std::to_string(row % 3 * 10 + row % 7);
      const std::string y = std::to_string(row * 7 % 11);
      const std::string heap = row % 3 == 0 ? "near" : row % 3 == 1 ? "middle" : "far";
      file << (is_shuffled ? heap + ",none," + y + "," + x : x + "," + y + "," + heap) << "\n";
    }
    return path;
  }
};

TEST_F(Predict, TheTestPartOfADataSetHasTheAccuracyOfTheRun) {
  for (const auto& [model, data, name] :
       {std::tuple{Words{"--model=mlp", "--ema=0.9"}, data_flags(), data_name()},
        std::tuple{Words{"--model=cnn"}, few_images(), std::string("few")}}) {
    std::filesystem::remove_all(train_dir());
    Process& job = train(model + data);
    Process& asked = run("predict", Words{"predict", train_dir(), "--threads=2"} + data);
    ASSERT_TRUE(exits(asked, kExitDone));
    const std::string pattern = "(" + name + " accuracy: [0-9.]+)";
    EXPECT_EQ(captured(asked.standard_output(), pattern), captured(job.standard_output(), pattern))
        << model.front();
    EXPECT_TRUE(says(asked, "class +images +precision +recall"));
  }
}

TEST_F(Predict, ARowOfATableIsAskedAboutByTheNamesOfItsColumns) {
  Process& job = train({"--data=" + put_table("heaps.csv", 300, false), "--label_column=heap",
                        "--data_dir=" + (scratch() / "data").string(), "--batch_size=20"},
                       "--train_steps=400");
  ASSERT_EQ(captured(job.standard_output(), "heaps accuracy: ([0-9.]+)"), "1.0000");
  Process& asked =
      run("predict", {"predict", train_dir(), put_table("others.csv", 21, true), "--top=2"});
  ASSERT_TRUE(exits(asked, kExitDone));
  EXPECT_TRUE(says(asked, "others.csv row 2: middle \\([0-9.]+\\), (near|far) \\([0-9.]+\\)$"));
  EXPECT_TRUE(says(asked, "heaps accuracy: 1.0000"));
}

TEST_F(Predict, EveryExampleIsALineOfJson) {
  train(Words{"--model=softmax"} + data_flags());
  const std::string file = (scratch() / "rows.csv").string();
  std::ofstream(file) << [] {
    std::string row = "0";
    for (int i = 1; i < 784; ++i) {
      row += ",0";
    }
    return row + "\n" + row + "\n";
  }();
  Process& asked = run("predict", {"predict", train_dir(), file, "--json"});
  ASSERT_TRUE(exits(asked, kExitDone));
  EXPECT_TRUE(says(asked, R"(^\{"input":".*rows.csv","row":2,"label":"[0-9]","probability":)"));
}

TEST_F(Predict, WhatCannotBeAskedIsRefusedInASentence) {
  train(Words{"--model=softmax"} + data_flags());
  const std::string empty = (scratch() / "empty").string();
  std::ofstream{empty};
  struct Case {
    Words words;
    int exit_code;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {{}, kExitUsage, "the model is missing"},
      {{train_dir()}, kExitUsage, "the examples are missing"},
      {{"/nowhere", empty}, kExitUsage, "\"/nowhere\" is not a directory"},
      {{scratch().string(), empty}, kExitUsage, "contains no model"},
      {{train_dir(), "/nowhere"}, kExitBadData, "/nowhere"},
      {{train_dir(), empty}, kExitBadData, "empty: there are no lines in it"},
      {{train_dir(), empty, "--top=0"}, kExitUsage, "--top"},
      {{train_dir(), empty, empty, "--labels=x"}, kExitUsage, "--labels: needs exactly one input"},
      {{train_dir(), empty, "--dataset=digits"}, kExitUsage, "give one of them"},
  };
  for (const Case& each : cases) {
    Process& asked = run("predict", Words{"predict"} + each.words);
    EXPECT_TRUE(exits(asked, each.exit_code));
    EXPECT_TRUE(says(asked, each.sentence));
  }
}

// The number of checkpoints depends on the disk's speed: a step is skipped if the previous
// checkpoint is still being written.
TEST_F(Predict, ADamagedCheckpointIsNotAsked) {
  train(Words{"--model=softmax", "--save_steps=20"} + data_flags());
  std::vector<std::filesystem::path> whole;
  for (const auto& entry : std::filesystem::directory_iterator(train_dir())) {
    if (entry.path().filename().string().starts_with("checkpoint-")) {
      whole.push_back(entry.path());
    }
  }
  ASSERT_GE(whole.size(), 2U);
  std::ranges::sort(whole);
  const auto damage = [](const std::filesystem::path& checkpoint) {
    std::fstream file(checkpoint / "model-00001-of-00001.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('x');
  };
  damage(whole.back());
  Process& asked = run("predict", Words{"predict", train_dir()} + data_flags());
  EXPECT_TRUE(exits(asked, kExitDone));
  EXPECT_TRUE(says(asked, "SHA-256"));
  const std::string before = whole[whole.size() - 2].filename().string();
  EXPECT_TRUE(
      says(asked, "step " + std::to_string(std::stoi(before.substr(before.find('-') + 1)))));
  Process& refused = run("predict", Words{"predict", whole.back().string()} + data_flags());
  EXPECT_TRUE(exits(refused, kExitBadData));
}

}  // namespace
}  // namespace disttf::test_process
