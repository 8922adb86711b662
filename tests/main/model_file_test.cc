#include "main/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>

#include "math/layers/registry.h"
#include "math/model_spec.h"
#include "tests/data/scratch.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(layers_from_toml(text, "m.toml"));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(nothing was thrown)";
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

}  // namespace
}  // namespace disttf
