#include "main/model_file.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <variant>

#include "math/layers/registry.h"
#include "math/model_spec.h"
#include "tests/data/scratch.h"
#include "tests/main/command_lines.h"
#include "tests/support/thrown.h"

namespace disttf {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

std::string refusal_of(const std::string& text) {
  return sentence_of([&] { return layers_from_toml(text, "m.toml"); });
}

// Writes a list of layers as a user would.
std::string toml_of(const std::vector<math::LayerSpec>& layers) {
  std::ostringstream text;
  for (const math::LayerSpec& layer : layers) {
    text << "[[layer]]\ntype = \"" << layer.type << "\"\n";
    if (!layer.name.empty()) {
      text << "name = '" << layer.name << "'\n";
    }
    for (const auto& [name, value] : layer.fields) {
      text << name << " = ";
      if (const auto* const number = std::get_if<double>(&value)) {
        text << *number << "  # a number\n";
      } else {
        text << '"' << std::get<std::string>(value) << "\"\n";
      }
    }
  }
  return text.str();
}

TEST(ModelFile, HoldsWhatTheNamesStandFor) {
  for (const math::ModelKind kind : {math::ModelKind::kSoftmax, math::ModelKind::kMlp,
                                     math::ModelKind::kLenet, math::ModelKind::kCnn}) {
    const std::vector<math::LayerSpec> layers = math::layers_of({.kind = kind});
    EXPECT_EQ(layers_from_toml(toml_of(layers), "m.toml"), layers) << math::model_name(kind);
  }
}

TEST(ModelFile, IsRefusedWithLineLayerFieldValueAndWhatIsAllowed) {
  EXPECT_EQ(refusal_of("[[layer]]\ntype = \"conv2d\"\nchannels = 8\nkernel = 0\n"),
            "--model: m.toml, line 4: layer 1 (conv2d): kernel: 0 is not a whole number from 1 to "
            "64");
  EXPECT_EQ(refusal_of("[[layer]]\ntype = \"relu\"\n\n[[layer]]\ntype = \"dense\"\nunit = 3\n"),
            "--model: m.toml, line 6: layer 2 (dense): unit: dense has no such field; its fields "
            "are units, initial");
  EXPECT_EQ(
      refusal_of("\n[[layer]]\ntype = \"dense\"\n"),
      "--model: m.toml, line 2: layer 1 (dense): units: is missing; it must be a whole number "
      "from 1 to 65536");
  EXPECT_THAT(refusal_of("[[layer]]\ntype = \"lstm\"\n"),
              StartsWith("--model: m.toml, line 2: layer 1: type: \"lstm\" is not one of dense, "));
  EXPECT_THAT(refusal_of("[[layer]]\nunits = 3\n"),
              StartsWith("--model: m.toml, line 1: layer 1: type: is missing; it must be one of "));
  EXPECT_EQ(refusal_of("[[layer]]\ntype = 3\n"),
            "--model: m.toml, line 2: layer 1: type: is not a word in quotes");
  EXPECT_EQ(refusal_of("[[layer]]\ntype = \"dense\"\nunits = [3]\n"),
            "--model: m.toml, line 3: layer 1 (dense): units: is neither a number nor a word in "
            "quotes");
  EXPECT_EQ(refusal_of("[[layer]]\ntype = \"dense\"\nunits = true\n"),
            "--model: m.toml, line 3: layer 1 (dense): units: is neither a number nor a word in "
            "quotes");
}

TEST(ModelFile, MayHaveACommentInAnyLanguage) {
  const auto layers = layers_from_toml(
      "\xEF\xBB\xBF# \u00fcber \u5c42\n[[layer]]\ntype = \"relu\"  # \u2003\n", "m.toml");
  ASSERT_EQ(layers.size(), 1U);
  EXPECT_EQ(layers[0].type, "relu");
  EXPECT_THAT(refusal_of("[[layer]]\ntype = \"rel\u00fc\"\n"),
              StartsWith("--model: m.toml, line 2: layer 1: type: \"rel??\" is not one of "));
}

TEST(ModelFile, MayBeARecipeWhoseFlagsStandBeforeTheLayers) {
  const std::string flags = "# a recipe\ntrain_steps = 5\noptimizer = adam\n";
  const auto layers = layers_from_toml(
      flags + " [[ layer ]]\ntype = \"relu\"\n[[layer]]\ntype = \"flatten\"\n", "m.toml");
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].type, "relu");
  EXPECT_THAT(refusal_of(flags + "[[layer]]\ntype = \"lstm\"\n"),
              StartsWith("--model: m.toml, line 5: "));
  EXPECT_EQ(refusal_of("train_steps = 5\n"),
            "--model: m.toml, line 1: \"train_steps\" is not layer");
}

TEST(ModelFile, IsRefusedWhereItIsNoListOfLayers) {
  EXPECT_THAT(refusal_of("[[layer]\n"), StartsWith("--model: m.toml, line 1: "));
  EXPECT_EQ(refusal_of(""), "--model: m.toml, line 1: there is no [[layer]]");
  EXPECT_EQ(refusal_of("layer = 3\n"), "--model: m.toml, line 1: there is no [[layer]]");
  EXPECT_EQ(refusal_of("layer = [1]\n"), "--model: m.toml, line 1: there is no [[layer]]");
  EXPECT_EQ(refusal_of("[[layer]]\ntype = \"relu\"\n[other]\n"),
            "--model: m.toml, line 3: \"other\" is not layer");
  std::string many;
  for (int each = 0; each < 64; ++each) {
    many += "[[layer]]\ntype = \"relu\"\n";
  }
  EXPECT_THAT(refusal_of(many), HasSubstr("64 layers; at most 63"));
  EXPECT_THAT(refusal_of("\"a\\n\u00e9" + std::string(10'000, 'x') + "\" = 1"),
              AllOf(StartsWith("--model: m.toml, line 1: \"a\\n"), SizeIs(testing::Lt(400U))));
  EXPECT_THAT(refusal_of("[[ [\n"), StartsWith("--model: m.toml, line 1: "));
  EXPECT_THAT(refusal_of(std::string(10'000, '[')), StartsWith("--model: m.toml, line 1: "));
}

class ModelFileOnDisk : public testing::Test {
 protected:
  [[nodiscard]] std::string put(const std::string& text) const {
    const auto path = directory_.path() / "small.toml";
    data::test::write(path, data::test::bytes_of(text));
    return path.string();
  }
  data::test::ScratchDirectory directory_;
};

constexpr const char* kSmall = "[[layer]]\ntype = \"dense\"\nunits = 10\nname = \"out\"\n";

TEST_F(ModelFileOnDisk, IsWhatModelNames) {
  const std::string path = put(kSmall);
  EXPECT_EQ(
      parse_task(
          "worker --task_index=0 --ps_hosts=localhost:1 --worker_hosts=localhost:2 --model " + path)
          .config.model.layers,
      layers_from_toml(kSmall, "m.toml"));
}

TEST_F(ModelFileOnDisk, IsShown) {
  const std::string text = action_of<Print>("model show " + put(kSmall)).text;
  EXPECT_THAT(text, StartsWith("model of 1 layers for 28x28x1 and 10 classes\n"));
  EXPECT_THAT(text, HasSubstr("\nout           dense         10                  7850 "));
}

TEST_F(ModelFileOnDisk, IsRefusedWhereItCannotBeRead) {
  const std::string none = (directory_.path() / "none.toml").string();
  EXPECT_THAT(refusal("launch --model " + none),
              HasSubstr("--model: " + none + " cannot be read: No such file or directory"));
  EXPECT_THAT(refusal("launch --model " + put(std::string((1U << 20U) + 1, '#'))),
              HasSubstr("is not a model file: it is larger than a MiB"));
}

// The reference for users who write a model file.
TEST(ModelFileDocument, HasEveryTypeWithAllItsFields) {
  std::ifstream file(std::string(DISTTF_SOURCE_DIR) + "/docs/training.md");
  std::stringstream document;
  document << file.rdbuf();
  for (const math::LayerType* const type : math::layer_types()) {
    const std::string text = document.str();
    const std::size_t row = text.find("\n| `" + std::string(type->name) + "` |");
    ASSERT_NE(row, std::string::npos) << type->name;
    const std::string line = text.substr(row + 1, text.find('\n', row + 1) - row - 1);
    for (const math::LayerField& field : type->fields) {
      EXPECT_THAT(line, HasSubstr("`" + std::string(field.name))) << type->name;
    }
  }
}

// disttf model show NAME

std::string said(const std::string& line) { return action_of<Print>(line).text; }

TEST(ModelShow, PrintsALineForEachLayerAndTheirSum) {
  EXPECT_EQ(said("model show mlp"),
            "mlp for 28x28x1 and 10 classes\n\n"
            "layer         type          output        parameters   multiply-adds         bytes\n"
            "hid           dense         100                78500           78400        314000\n"
            "relu1         relu          100                    0               0             0\n"
            "sm            dense         10                  1010            1000          4040\n"
            "total                                          79510           79400        318040\n\n"
            "Multiply-adds count one forward pass of one example; bytes count the parameters.\n"
            "A trainer keeps 4016 bytes for each example of a batch.\n");
}

// Computed by hand: 25 * 32 * 28 * 28 + 25 * 32 * 64 * 14 * 14 + 3136 * 1024 + 1024 * 10.
TEST(ModelShow, CountsWhatAConvolutionMultiplies) {
  const auto model = nlohmann::json::parse(said("model show lenet --json"));
  EXPECT_EQ(model.at("parameters"), 3274634);
  EXPECT_EQ(model.at("multiply_adds"), 627200 + 10035200 + 3211264 + 10240);
  EXPECT_EQ(model.at("layers").size(), 11U);
  EXPECT_EQ(model.at("layers")[3].at("name"), "conv2");
  EXPECT_EQ(model.at("layers")[3].at("output"), "14x14x64");
}

TEST(ModelShow, TellsWhatIsTrainedFromRunningStatistics) {
  const std::string path = testing::TempDir() + "model_command_test_norm.toml";
  std::ofstream(path) << "[[layer]]\n"
                         "type = 'batch_norm'\n"
                         "[[layer]]\n"
                         "type = 'dense'\n"
                         "units = 3\n";
  const std::string line = "model show " + path + " --input 4 --classes 3";
  EXPECT_THAT(
      said(line),
      HasSubstr(
          "batch_norm1   batch_norm    4                     16               4            64\n"
          "dense1        dense         3                     15              12            60\n"
          "total                                             31              16           124\n"
          "\n"
          "23 of the parameters are trained, 8 are running statistics.\n"
          "Multiply-adds"));
  const auto model = nlohmann::json::parse(said(line + " --json"));
  EXPECT_EQ(model.at("parameters"), 31);
  EXPECT_EQ(model.at("trained_parameters"), 23);
  EXPECT_EQ(model.at("layers")[0].at("trained_parameters"), 8);
}

TEST(ModelShow, TakesTheShapeOfTheExamples) {
  const auto model =
      nlohmann::json::parse(said("model show mlp --input=4 --classes=3 --hidden_units=7,5 --json"));
  EXPECT_EQ(model.at("parameters"), 4 * 7 + 7 + 7 * 5 + 5 + 5 * 3 + 3);
  EXPECT_EQ(nlohmann::json::parse(said("model show cnn --input 32x32x3 --json")).at("input"),
            "32x32x3");
  EXPECT_EQ(nlohmann::json::parse(said("model show cnn --input 32x32 --json")).at("input"),
            "32x32x1");
}

TEST(ModelShow, SaysWhatIsWrong) {
  EXPECT_EQ(refusal("model"), "model: the action is missing; show (see disttf model --help)");
  EXPECT_EQ(refusal("model draw mlp"), "model: \"draw\" is not show (see disttf model --help)");
  EXPECT_EQ(refusal("model show"),
            "model show: the name is missing; softmax, mlp, lenet, cnn, or a model file, which "
            "ends in .toml (see disttf model --help)");
  EXPECT_EQ(refusal("model show resnet"),
            "model show: \"resnet\" is not softmax, mlp, lenet, cnn, or a model file, which ends "
            "in .toml (see disttf model --help)");
  for (const char* shape : {"28x", "x28", "28x28x1x1", "28*28", "-3", "28x28x1y"}) {
    EXPECT_THAT(refusal(std::string("model show mlp --input=") + shape),
                HasSubstr(" is not HEIGHTxWIDTHxCHANNELS, like 28x28x1"))
        << shape;
  }
  EXPECT_THAT(refusal("model show lenet --input 1x1x1"),
              HasSubstr("layer 3 (max_pool): size: 2 is larger than the image, which is 32"));
  EXPECT_THAT(refusal("model show mlp --input 0"),
              HasSubstr("channels: 0 is not allowed, it must be from 1 to 1048576"));
  EXPECT_THAT(refusal("model show mlp --classes 1"),
              HasSubstr("--classes: 1 is not from 2 to 256"));
  EXPECT_THAT(refusal("model show mlp --hidden_units 0"), HasSubstr("--hidden_units"));
}

TEST(ModelShow, HasAHelp) {
  EXPECT_THAT(said("model --help"), HasSubstr("--input"));
  EXPECT_THAT(said("model show --help"), HasSubstr("oftmax, mlp, lenet, cnn, or a model file"));
}

}  // namespace
}  // namespace disttf
