// `disttf export`: other runtimes give the same outputs for a model as disttf.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/digits.h"
#include "math/random.h"
#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;

// Returns the python3 of the environment with onnx and onnxruntime that .ci/tools makes.
std::filesystem::path python_with_onnx() {
  const char* const given = std::getenv("DISTTF_EXPORTS");
  return given != nullptr ? std::filesystem::path(given)
                          : source_directory() / "build" / "tools" / "exports" / "bin" / "python";
}

void put(const std::filesystem::path& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
}

class Export : public ProcessTest {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (scratch() / name).string();
  }

  void train(const Words& flags, const char* steps = "--train_steps=60",
             const Words& data = data_flags()) {
    Process& job =
        run("launch",
            Words{"launch", "--workers=2", "--train_dir=" + path("run"), steps} + flags + data);
    EXPECT_TRUE(exits(job, kExitDone));
  }

  Process& export_model(const std::string& model, const Words& flags) {
    return run("export", Words{"export", model} + flags);
  }

  // The 10 000 images of the test set as separate files, and their two names.
  struct TestFiles {
    std::string images;
    std::string labels;
  };
  [[nodiscard]] TestFiles test_files() const {
    if (has_mnist()) {
      return {.images = (mnist_directory() / "t10k-images-idx3-ubyte.gz").string(),
              .labels = (mnist_directory() / "t10k-labels-idx1-ubyte.gz").string()};
    }
    const auto files =
        data::make_digits({.purpose = static_cast<std::uint32_t>(math::Purpose::kDigits),
                           .random_bits = &math::random_bits});
    put(scratch() / "images", files[2]);
    put(scratch() / "labels", files[3]);
    return {.images = path("images"), .labels = path("labels")};
  }
};

class ExportedModel : public Export {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(python_with_onnx())) {
      test_support::skip_without_engine(
          python_with_onnx().string() +
          " is not there: .ci/tools makes it; or DISTTF_EXPORTS names one");
    }
  }

  json checked(const Words& arguments) {
    Process& check = run_program(
        python_with_onnx(),
        Words{(source_directory() / "tests" / "process" / "check_exports.py").string()} +
            arguments + Words{path("result.json")},
        "check_exports.py");
    EXPECT_TRUE(exits(check, kExitDone, seconds(200)));
    std::ifstream file(scratch() / "result.json");
    return json::parse(file, nullptr, /*allow_exceptions=*/false);
  }

  // Compares probabilities, with float32 accuracy, and labels and accuracy.
  static void expect_same(const json& result, std::size_t correct) {
    EXPECT_EQ(result["rows"], 10'000);
    EXPECT_LT(result["difference"].get<double>(), 1e-5);
    EXPECT_LT(result["difference_of_few"].get<double>(), 1e-5);
    EXPECT_EQ(result["other_labels"], 0);
    EXPECT_EQ(result["correct"], correct);
    RecordProperty("difference", result["difference"].dump());
    RecordProperty("correct", result["correct"].dump());
  }
};

std::string batch_norm_model() {
  std::string text;
  for (const char* layer :
       {"type = \"conv2d\"\nchannels = 8\nkernel = 3", "type = \"batch_norm\"", "type = \"relu\"",
        "type = \"max_pool\"\nsize = 2", "type = \"conv2d\"\nchannels = 12\nkernel = 3",
        "type = \"batch_norm\"", "type = \"relu\"", "type = \"max_pool\"\nsize = 2",
        "type = \"flatten\"", "type = \"dropout\"\nrate = 0.2", "type = \"dense\"\nunits = 10"}) {
    text += std::string("[[layer]]\n") + layer + "\n\n";
  }
  return text;
}

class OneOfThree : public ExportedModel, public ::testing::WithParamInterface<const char*> {};

TEST_P(OneOfThree, SaysInOnnxRuntimeWhatPredictSays) {
  std::ofstream(scratch() / "batch_norm.toml") << batch_norm_model();
  const std::string model = GetParam();
  train({"--model=" + (model == "batch_norm" ? path("batch_norm.toml") : model)},
        "--train_steps=100");
  const TestFiles files = test_files();
  Process& asked =
      run("predict", {"predict", path("run"), files.images, "--labels=" + files.labels, "--json"});
  ASSERT_TRUE(exits(asked, kExitDone));
  std::ofstream(scratch() / "answers") << asked.standard_output();
  const auto correct = std::stoul(captured(asked.standard_output(), "\"correct\":([0-9]+)"));
  ASSERT_TRUE(
      exits(export_model(path("run"), {"--format=onnx", "--output=" + path("m.onnx")}), kExitDone));
  const json result =
      checked({"onnx", path("m.onnx"), files.images, files.labels, path("answers")});
  expect_same(result, correct);
  EXPECT_EQ(result["ir_version"], 7);
  EXPECT_EQ(result["opset"], 13);
  EXPECT_EQ(result["facts"]["disttf.step"], "100");
  // TensorFlow is large, so this part runs only where it is installed (docs/export.md).
  if (const char* const python = std::getenv("DISTTF_TENSORFLOW"); python != nullptr) {
    ASSERT_TRUE(
        exits(export_model(path("run"), {"--format=saved_model", "--output=" + path("models/1")}),
              kExitDone));
    Process& check = run_program(
        python,
        {(source_directory() / "tests" / "process" / "check_exports.py").string(), "saved_model",
         path("models/1"), files.images, files.labels, path("answers"), path("result.json")});
    ASSERT_TRUE(exits(check, kExitDone, seconds(200)));
    std::ifstream file(scratch() / "result.json");
    expect_same(json::parse(file, nullptr, /*allow_exceptions=*/false), correct);
  }
}

INSTANTIATE_TEST_SUITE_P(ExportedModel, OneOfThree,
                         ::testing::Values("softmax", "mlp", "batch_norm"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(ExportedModel, FilesAreReadByTheirOwnLibraries) {
  train({"--model=cnn"}, "--train_steps=20", few_images());
  for (const char* format : {"npz", "safetensors"}) {
    ASSERT_TRUE(exits(
        export_model(path("run"), {std::string("--format=") + format, "--output=" + path(format)}),
        kExitDone));
  }
  const json result = checked({"safetensors", path("safetensors"), path("npz")});
  EXPECT_EQ(result["same"], true);
  EXPECT_EQ(result["shapes"]["conv1_w"], json({3, 3, 1, 16}));
  EXPECT_EQ(result["names"].size(), 10U);
}

TEST_F(Export, AModelOfDisttfIsAskedAsItsRunIs) {
  train({"--model=mlp", "--ema=0.9"});
  Process& exported =
      export_model(path("run"), Words{"--format=disttf", "--output=" + path("m")} + data_flags());
  ASSERT_TRUE(exits(exported, kExitDone));
  const std::string pattern = "(" + data_name() + " accuracy: [0-9.]+)";
  std::vector<std::string> said;
  for (const char* model : {"run", "m"}) {
    Process& asked = run("predict", Words{"predict", path(model)} + data_flags());
    ASSERT_TRUE(exits(asked, kExitDone));
    said.push_back(captured(asked.standard_output(), pattern));
  }
  EXPECT_EQ(said[0], said[1]);
  // A second export keeps the figures that the first one recorded.
  ASSERT_TRUE(
      exits(export_model(path("m"), {"--format=npz", "--output=" + path("m.npz")}), kExitDone));
  std::ifstream file(scratch() / "m.npz", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string accuracy = captured(bytes, "\"disttf.accuracy\":\"(0[.0-9]+)\"");
  EXPECT_EQ(accuracy, captured(said[0], "(0[.0-9]*[1-9])"));
}

TEST_F(Export, ARunGoesOnFromWhatWasImported) {
  train({"--model=mlp"});
  const std::string pattern = "(" + data_name() + " accuracy: [0-9.]+)";
  Process& first = run("predict", Words{"predict", path("run")} + data_flags());
  ASSERT_TRUE(exits(first, kExitDone));
  for (const std::string& format : {std::string("onnx"), std::string("safetensors")}) {
    ASSERT_TRUE(
        exits(export_model(path("run"), {"--format=" + format, "--output=" + path("m." + format)}),
              kExitDone));
    const std::string next = path("next_" + format);
    ASSERT_TRUE(
        exits(run("import", {"import", path("m." + format), "--train_dir=" + next}), kExitDone));
    Process& asked = run("predict", Words{"predict", next} + data_flags());
    ASSERT_TRUE(exits(asked, kExitDone));
    EXPECT_EQ(captured(asked.standard_output(), pattern),
              captured(first.standard_output(), pattern));
    const std::string model = format == "onnx" ? next + "/model.toml" : "mlp";
    Process& job = run("launch", Words{"launch", "--workers=2", "--train_steps=5",
                                       "--train_dir=" + next, "--model=" + model} +
                                     data_flags());
    EXPECT_TRUE(exits(job, kExitDone));
    EXPECT_TRUE(says(job, "Restoring from .*checkpoint-00000000: global step 0"));
    Process& refused = run("import", {"import", path("m." + format), "--train_dir=" + next});
    EXPECT_TRUE(exits(refused, kExitUsage));
    EXPECT_TRUE(says(refused, ", from which a run would continue; must have no checkpoint"));
  }
}

// 28x1x28 has as many numbers as 28x28x1, so its weights would fit.
TEST_F(Export, AModelOfAnotherShapeIsNotGoneOnFrom) {
  train({"--model=mlp"}, "--train_steps=5");
  ASSERT_TRUE(
      exits(export_model(path("run"), {"--format=npz", "--output=" + path("m.npz")}), kExitDone));
  const std::string turned = path("turned");
  Process& other =
      run("import", {"import", path("m.npz"), "--train_dir=" + turned, "--input=28x1x28"});
  EXPECT_TRUE(exits(other, kExitUsage));
  EXPECT_TRUE(says(other, "was exported from a model of 28x28x1"));
  // A run on a table of 784 columns, whose weights would fit those of the images, does not resume
  // either.
  std::ofstream table(path("table.csv"));
  for (int row = 0; row < 100; ++row) {
    for (int column = 0; column < 784; ++column) table << (row * column) % 7 << ',';
    table << "class" << row % 10 << '\n';
  }
  table.close();
  Process& run_on_table =
      run("launch",
          {"launch", "--workers=1", "--train_steps=10", "--model=mlp", "--train_dir=" + path("run"),
           "--data=" + path("table.csv"), "--data_dir=" + path("data")});
  EXPECT_TRUE(exits(run_on_table, kExitUsage));
  EXPECT_TRUE(
      says(run_on_table, "its model takes examples of 28x28x1, and those of this run are 784"));
}

TEST_F(Export, WhatCannotBeImportedIsRefusedInASentence) {
  const std::string text = path("text.onnx");
  std::ofstream(text) << "no model at all";
  struct Case {
    Words words;
    int exit_code;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {{}, kExitUsage, "the file is missing"},
      {{text}, kExitUsage, "--train_dir: missing"},
      {{text, "--train_dir=" + path("new")}, kExitBadData, "not an ONNX file"},
      {{"/nowhere", "--train_dir=" + path("new")}, kExitBadData, "/nowhere"},
  };
  for (const Case& each : cases) {
    Process& refused = run("import", Words{"import"} + each.words);
    EXPECT_TRUE(exits(refused, each.exit_code));
    EXPECT_TRUE(says(refused, each.sentence));
  }
}

TEST_F(Export, WhatIsThereStaysUnlessItMayBeReplaced) {
  train({"--model=softmax"}, "--train_steps=5");
  const Words folder = {"--format=saved_model", "--output=" + path("out/1/")};
  ASSERT_TRUE(exits(export_model(path("run"), folder), kExitDone));
  Process& refused = export_model(path("run"), folder);
  EXPECT_TRUE(exits(refused, kExitUsage));
  EXPECT_TRUE(says(refused, "exists; --overwrite replaces it"));
  EXPECT_TRUE(exits(export_model(path("run"), folder + Words{"--overwrite"}), kExitDone));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch() / "out")) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, testing::ElementsAre("1"));
  Process& other =
      export_model(path("run"), {"--format=saved_model", "--output=" + path("run"), "--overwrite"});
  EXPECT_TRUE(exits(other, kExitUsage));
  EXPECT_TRUE(says(other, "holds no saved_model.pb"));
}

TEST_F(Export, WhatCannotBeExportedIsRefusedInASentence) {
  struct Case {
    Words words;
    int exit_code;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {{}, kExitUsage, "the model is missing"},
      {{"/nowhere"}, kExitUsage, "--format: missing; one of disttf, onnx"},
      {{"/nowhere", "--format=onnx"}, kExitUsage, "\"/nowhere\" is not a directory"},
      {{path(""), "--format=onnx"}, kExitUsage, "contains no model"},
      {{path(""), "--format=pickle"}, kExitUsage, "--format: \"pickle\""},
  };
  for (const Case& each : cases) {
    Process& refused = run("export", Words{"export"} + each.words);
    EXPECT_TRUE(exits(refused, each.exit_code));
    EXPECT_TRUE(says(refused, each.sentence));
  }
}

// `disttf predict`: the saved model gives the outputs that the run reported.

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
