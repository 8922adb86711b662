// A model of another program as layers and weights, and messages for what is not supported.
#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/protobuf.h"
#include "model/export/answer_steps.h"
#include "model/export/weights_files.h"
#include "model/import/import_model.h"
#include "run/run_config.h"
#include "tests/model/export_fixture.h"
#include "tests/run/run_configs.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using data::ProtobufMessage;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

ImportedModel imported(const std::string& bytes, const ImportWishes& wishes = {}) {
  return import_model({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "m",
                      wishes);
}

std::string refusal_of(const std::string& bytes, const ImportWishes& wishes = {}) {
  return sentence_of([&] { return imported(bytes, wishes); }, "nothing was thrown");
}

std::string exported(const TrainedModel& model) {
  return onnx_model(answer_steps_of(model), facts_of(model), "1");
}

// ---- What disttf has exported ----

TrainedModel model_without_folds() {
  return model_of(
      {.height = 9, .width = 7, .channels = 2},
      {layer("batch_norm"), layer("conv2d", {{"channels", 3.0}, {"kernel", 3.0}}), layer("relu"),
       layer("batch_norm"), layer("max_pool", {{"size", 2.0}}),
       layer("conv2d", {{"channels", 4.0}, {"kernel", 2.0}, {"padding", "valid"}}), layer("tanh"),
       layer("average_pool", {{"size", 2.0}, {"stride", 1.0}}), layer("flatten"),
       layer("batch_norm", {{"epsilon", 0.01}}), layer("sigmoid"), layer("dense", {{"units", 6.0}}),
       layer("relu"), layer("dense", {{"units", 3.0}}, "sm")},
      3);
}

TEST(ImportOfAnExport, HasTheSameWeights) {
  for (const TrainedModel& model : {model_without_folds(), model_of_numbers()}) {
    for (const std::string& bytes : {exported(model), npz_model(model, facts_of(model)),
                                     safetensors_model(model, facts_of(model))}) {
      const ImportedModel read = imported(bytes);
      EXPECT_EQ(read.model.weights_sha256, model.weights_sha256);
      EXPECT_EQ(read.model.step, 0U);
      EXPECT_EQ(read.model.config.model.input, model.config.model.input);
      EXPECT_EQ(read.model.config.model.classes, model.config.model.classes);
      EXPECT_EQ(read.model.config.model.numbers, model.config.model.numbers);
      EXPECT_EQ(read.model.config.model.loss, model.config.model.loss);
      EXPECT_EQ(read.model.config.examples, model.config.examples);
      const auto found = math::layout_of(read.model.config.model);
      const auto expected = math::layout_of(model.config.model);
      for (std::size_t i = 0; i < expected.variables().size(); ++i) {
        EXPECT_EQ(found.variables()[i].name, expected.variables()[i].name);
        EXPECT_EQ(found.variables()[i].shape, expected.variables()[i].shape);
      }
    }
  }
}

TEST(ImportOfAnExport, AnswersAlikeWhereSomethingWasFolded) {
  const TrainedModel model = model_of_all_layers();
  const ImportedModel read = imported(exported(model));
  EXPECT_NE(read.model.weights_sha256, model.weights_sha256);
  std::vector<std::uint8_t> image(model.config.model.input.size());
  std::uint32_t state = 9;
  for (std::uint8_t& pixel : image) {
    pixel = static_cast<std::uint8_t>((next_number(state) + 1) * 127);
  }
  std::vector<float> expected(3);
  std::vector<float> found(3);
  predictor_of(model, 1)->predict(image, expected);
  predictor_of(read.model, 1)->predict(image, found);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-6);
  }
}

// ---- What others have exported ----

using Lists = std::map<std::string, std::vector<std::uint64_t>>;

// A graph in a few words.
class Graph {
 public:
  Graph& tensor(const std::string& name, const std::vector<std::uint64_t>& sizes,
                const std::vector<float>& values) {
    ProtobufMessage tensor;
    for (const std::uint64_t size : sizes) {
      tensor.add_number(1, size);
    }
    tensor.add_number(2, 1).add_floats(4, values).add_bytes(8, name);
    graph_.add_message(5, tensor);
    return *this;
  }
  Graph& node(const std::string& type, const std::vector<std::string>& inputs,
              const std::string& output, const std::map<std::string, std::int64_t>& wholes = {},
              const std::map<std::string, std::vector<std::uint64_t>>& lists = {}) {
    ProtobufMessage node;
    for (const std::string& input : inputs) {
      node.add_bytes(1, input);
    }
    node.add_bytes(2, output).add_bytes(3, "/" + output).add_bytes(4, type);
    for (const auto& [name, value] : wholes) {
      node.add_message(
          5, ProtobufMessage().add_bytes(1, name).add_number(3, static_cast<std::uint64_t>(value)));
    }
    for (const auto& [name, values] : lists) {
      ProtobufMessage attribute;
      attribute.add_bytes(1, name);
      for (const std::uint64_t value : values) {
        attribute.add_number(8, value);
      }
      node.add_message(5, attribute);
    }
    graph_.add_message(1, node);
    return *this;
  }
  // [N, sizes...] -> y
  [[nodiscard]] std::string bytes(const std::vector<std::uint64_t>& sizes,
                                  const std::string& output = "y") const {
    ProtobufMessage shape;
    shape.add_message(1, ProtobufMessage().add_bytes(2, "N"));
    for (const std::uint64_t size : sizes) {
      shape.add_message(1, ProtobufMessage().add_number(1, size));
    }
    const ProtobufMessage type =
        ProtobufMessage().add_message(1, ProtobufMessage().add_number(1, 1).add_message(2, shape));
    ProtobufMessage graph = graph_;
    graph.add_message(11, ProtobufMessage().add_bytes(1, "x").add_message(2, type))
        .add_message(12, ProtobufMessage().add_bytes(1, output));
    return ProtobufMessage()
        .add_number(1, 8)
        .add_message(7, graph)
        .add_message(8, ProtobufMessage().add_number(2, 17))
        .bytes();
  }

 private:
  ProtobufMessage graph_;
};

std::vector<float> variable_of(const ImportedModel& read, const std::string& name) {
  const auto layout = math::layout_of(read.model.config.model);
  for (const math::Variable& variable : layout.variables()) {
    if (variable.name == name) {
      const auto values = read.model.parameters.span().subspan(variable.offset, variable.size);
      return {values.begin(), values.end()};
    }
  }
  return {};
}

TEST(ImportOfOnnx, TurnsWeightsThatStandUnitsFirst) {
  const std::string bytes = Graph()
                                .tensor("fc.weight", {3, 2}, {1, 2, 3, 4, 5, 6})
                                .tensor("fc.bias", {3}, {7, 8, 9})
                                .node("Gemm", {"x", "fc.weight", "fc.bias"}, "y", {{"transB", 1}})
                                .bytes({2});
  const ImportedModel read = imported(bytes);
  EXPECT_THAT(variable_of(read, "fc_w"), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(variable_of(read, "fc_b"), ElementsAre(7, 8, 9));
  EXPECT_TRUE(read.model.is_of_numbers());
  EXPECT_EQ(to_model_file(read.model.config.model.layers),
            "[[layer]]\ntype = \"dense\"\nname = \"fc\"\nunits = 3\n");
}

TEST(ImportOfOnnx, TakesAnAddForABias) {
  const std::string bytes = Graph()
                                .tensor("w", {2, 2}, {1, 2, 3, 4})
                                .tensor("b", {2}, {5, 6})
                                .node("MatMul", {"x", "w"}, "h")
                                .node("Add", {"b", "h"}, "y")
                                .bytes({2});
  EXPECT_THAT(variable_of(imported(bytes), "w_b"), ElementsAre(5, 6));
}

TEST(ImportOfOnnx, ARowMayBeAnImage) {
  const std::string bytes = Graph()
                                .tensor("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
                                .node("MatMul", {"x", "w"}, "y")
                                .bytes({4});
  const ImportedModel read = imported(bytes, {.input = math::Shape{.height = 2, .width = 2}});
  EXPECT_FALSE(read.model.is_of_numbers());
  EXPECT_EQ(read.model.config.model.input, (math::Shape{.height = 2, .width = 2}));
  EXPECT_THAT(refusal_of(bytes, {.input = math::Shape{.height = 3, .width = 2}}),
              HasSubstr("4 numbers, and --input 6"));
}

TEST(ImportOfOnnx, WhatScalesPixelsGoesIntoTheFirstWeights) {
  const auto scaled = [](const std::string& type, float by) {
    return imported(Graph()
                        .tensor("s", {}, {by})
                        .tensor("w", {1, 2}, {1, 2})
                        .node(type, {"x", "s"}, "h")
                        .node("Flatten", {"h"}, "f")
                        .node("MatMul", {"f", "w"}, "y")
                        .bytes({1, 1, 1}));
  };
  EXPECT_THAT(variable_of(scaled("Div", 255), "w_w"), ElementsAre(1, 2));
  EXPECT_THAT(variable_of(scaled("Mul", 1 / 510.0F), "w_w"), ElementsAre(0.5F, 1));
  EXPECT_THAT(variable_of(scaled("Mul", 2), "w_w"), ElementsAre(2, 4));
  EXPECT_THAT(variable_of(scaled("Sub", 0.5F), "w_b"), ElementsAre(-0.5F, -1));
}

TEST(ImportOfOnnx, NamesWhatIsNotSupported) {
  const auto graph = [] { return Graph().tensor("w", {1, 1, 3, 3}, std::vector<float>(9)); };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {Graph().node("LSTM", {"x"}, "y").bytes({4}), "node \"/y\" (LSTM): this operator"},
      {graph().node("Conv", {"x", "w"}, "y", {{"group", 2}}).bytes({1, 5, 5}), "(Conv): group"},
      {graph().node("Conv", {"x", "w"}, "y", {}, Lists{{"pads", {2, 2, 2, 2}}}).bytes({1, 5, 5}),
       "pads must be none, or 1, 1, 1, 1"},
      {graph().node("Conv", {"x", "w"}, "y", {}, Lists{{"dilations", {2, 2}}}).bytes({1, 5, 5}),
       "dilations"},
      {Graph()
           .node("MaxPool", {"x"}, "y", {{"ceil_mode", 1}}, Lists{{"kernel_shape", {2, 2}}})
           .bytes({1, 5, 5}),
       "ceil_mode"},
      {Graph().node("Relu", {"x"}, "h").node("Add", {"x", "h"}, "y").bytes({4}), "must be a chain"},
      {Graph().node("Relu", {"x"}, "h").bytes({4}), "its output is not the last node's"},
      {Graph()
           .tensor("w", {3, 2}, std::vector<float>(6))
           .node("MatMul", {"x", "w"}, "y")
           .bytes({2}),
       "its weights are for 3 inputs, but there are 2"},
      {Graph()
           .tensor("w", {2, 2}, std::vector<float>(3))
           .node("MatMul", {"x", "w"}, "y")
           .bytes({2}),
       "the constant \"w\" has 3 numbers"},
      {Graph()
           .tensor("w", {2, 1}, {1, 2})
           .tensor("s", {}, {3})
           .tensor("v", {1, 2}, {1, 2})
           .node("MatMul", {"x", "w"}, "h")
           .node("Mul", {"h", "s"}, "g")
           .node("MatMul", {"g", "v"}, "y")
           .bytes({2}),
       "it follows the scaling of an output of one number"},
      {Graph().node("Relu", {"x"}, "y").bytes({0}), "with known sizes"},
      {Graph().node("Relu", {"x"}, "y").bytes({4}).substr(0, 20), "cut short"},
      {"no model at all", "not an ONNX file"},
      {"", "it has no graph"},
  };
  for (const auto& [bytes, sentence] : cases) {
    EXPECT_THAT(refusal_of(bytes), HasSubstr(sentence));
    EXPECT_THAT(refusal_of(bytes), StartsWith("m: "));
  }
  EXPECT_THAT(refusal_of(Graph().node("Relu", {"x"}, "y").bytes({4}), {.names_model = true}),
              StartsWith("--model: m contains its layers"));
}

// ---- The order of an image that comes in ----

// 0, 1, 2, ...
std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

// As Keras' Input, Flatten, Dense come out of tf2onnx: [N, sizes...] -> Reshape -> MatMul.
std::string flattened(const std::vector<std::uint64_t>& sizes) {
  std::uint64_t numbers = 1;
  for (const std::uint64_t size : sizes) numbers *= size;
  return Graph()
      .tensor("w", {numbers, 2}, counting(2 * numbers))
      .node("Flatten", {"x"}, "f")
      .node("MatMul", {"f", "w"}, "y")
      .bytes(sizes);
}

TEST(ImportOfChannelsLast, SizesOfWhichOneAloneMayBeChannelsDecide) {
  const ImportedModel last = imported(flattened({5, 4, 3}));
  EXPECT_EQ(last.model.config.model.input, (math::Shape{.height = 5, .width = 4, .channels = 3}));
  EXPECT_EQ(variable_of(last, "w_w"), counting(120));  // in disttf's own order
  const ImportedModel first = imported(flattened({3, 5, 7}));
  EXPECT_EQ(first.model.config.model.input, (math::Shape{.height = 5, .width = 7, .channels = 3}));
  EXPECT_NE(variable_of(first, "w_w"), counting(210));
  EXPECT_EQ(imported(flattened({28, 28, 1})).model.config.model.input,
            (math::Shape{.height = 28, .width = 28, .channels = 1}));
  EXPECT_EQ(imported(flattened({1, 28, 28})).model.config.model.input,
            (math::Shape{.height = 28, .width = 28, .channels = 1}));
}

TEST(ImportOfChannelsLast, AGreyImageNeedsNoSizeForChannels) {
  const ImportedModel read = imported(flattened({5, 4}));
  EXPECT_EQ(read.model.config.model.input, (math::Shape{.height = 5, .width = 4}));
  EXPECT_EQ(variable_of(read, "w_w"), counting(40));
}

TEST(ImportOfChannelsLast, WhatNothingDecidesIsRefusedWithTheFlagThatDoes) {
  for (const std::vector<std::uint64_t>& sizes :
       std::vector<std::vector<std::uint64_t>>{{3, 5, 3}, {8, 5, 6}, {1, 5, 1}, {3, 2, 1}}) {
    EXPECT_THAT(refusal_of(flattened(sizes)), StartsWith("--input_layout: missing; m: its input"));
    EXPECT_EQ(
        imported(flattened(sizes), {.layout = ImageLayout::kChannelsLast}).model.config.model.input,
        (math::Shape{.height = sizes[0], .width = sizes[1], .channels = sizes[2]}));
    EXPECT_EQ(imported(flattened(sizes), {.layout = ImageLayout::kChannelsFirst})
                  .model.config.model.input,
              (math::Shape{.height = sizes[1], .width = sizes[2], .channels = sizes[0]}));
    EXPECT_EQ(imported(flattened(sizes), {.input = math::Shape{sizes[0], sizes[1], sizes[2]}})
                  .model.config.model.input,
              (math::Shape{.height = sizes[0], .width = sizes[1], .channels = sizes[2]}));
  }
  EXPECT_THAT(refusal_of(flattened({28, 28, 1}),
                         {.input = math::Shape{.height = 28, .width = 1, .channels = 28},
                          .layout = ImageLayout::kChannelsLast}),
              HasSubstr("its input is 28x28x1, and --input is 28x1x28"));
}

// As Keras' Conv2D comes out of tf2onnx.
Graph convolution_of_keras() {
  return Graph()
      .tensor("k", {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6})
      .tensor("w", {12, 2}, counting(24))
      .node("Transpose", {"x"}, "t", {}, Lists{{"perm", {0, 3, 1, 2}}})
      .node("Conv", {"t", "k"}, "c")
      .node("Relu", {"c"}, "r")
      .node("Transpose", {"r"}, "u", {}, Lists{{"perm", {0, 2, 3, 1}}})
      .node("Flatten", {"u"}, "f")
      .node("MatMul", {"f", "w"}, "y");
}

TEST(ImportOfChannelsLast, ATransposeBeforeAConvolutionSaysSo) {
  const ImportedModel read = imported(convolution_of_keras().bytes({3, 2, 3}));  // not by its sizes
  EXPECT_EQ(read.model.config.model.input, (math::Shape{.height = 3, .width = 2, .channels = 3}));
  EXPECT_THAT(variable_of(read, "k_w"), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(variable_of(read, "w_w"), counting(24));
  EXPECT_THAT(
      refusal_of(convolution_of_keras().bytes({3, 2, 3}), {.layout = ImageLayout::kChannelsFirst}),
      StartsWith("--input_layout: nchw, but the node"));
}

TEST(ImportOfChannelsLast, AConvolutionOfTheInputHasItsChannelsFirstAndOddSizesAreSaid) {
  const std::string bytes = Graph()
                                .tensor("k", {2, 5, 1, 1}, counting(10))
                                .tensor("w", {8, 2}, counting(16))
                                .node("Conv", {"x", "k"}, "c")
                                .node("Flatten", {"c"}, "f")
                                .node("MatMul", {"f", "w"}, "y")
                                .bytes({5, 4, 1});
  const ImportedModel read = imported(bytes);
  EXPECT_EQ(read.model.config.model.input, (math::Shape{.height = 4, .width = 1, .channels = 5}));
  EXPECT_THAT(read.notes, ElementsAre(HasSubstr("[N, 5, 4, 1] is read as 4x1x5")));
  EXPECT_THAT(refusal_of(bytes, {.layout = ImageLayout::kChannelsLast}), HasSubstr("use nchw"));
}

TEST(ImportOfChannelsLast, TheSameTransposeTwiceIsRefused) {
  const std::string bytes = Graph()
                                .tensor("w", {12, 2}, counting(24))
                                .node("Transpose", {"x"}, "t", {}, Lists{{"perm", {0, 2, 3, 1}}})
                                .node("Transpose", {"t"}, "u", {}, Lists{{"perm", {0, 2, 3, 1}}})
                                .node("Flatten", {"u"}, "f")
                                .node("MatMul", {"f", "w"}, "y")
                                .bytes({3, 2, 2});
  EXPECT_THAT(refusal_of(bytes), HasSubstr("(Transpose): perm"));
}

TEST(ImportOfOnnx, AnAddAlongTheWidthIsNoBias) {
  const auto graph = [](const std::vector<std::uint64_t>& sizes) {
    return Graph()
        .tensor("k", {2, 1, 1, 1}, {1, 2})
        .tensor("b", sizes, {3, 4})
        .tensor("w", {8, 2}, counting(16))
        .node("Conv", {"x", "k"}, "c")
        .node("Add", {"c", "b"}, "a")
        .node("Flatten", {"a"}, "f")
        .node("MatMul", {"f", "w"}, "y")
        .bytes({1, 2, 2});
  };
  EXPECT_THAT(variable_of(imported(graph({1, 2, 1, 1})), "k_b"), ElementsAre(3, 4));
  EXPECT_THAT(variable_of(imported(graph({2, 1, 1})), "k_b"), ElementsAre(3, 4));
  EXPECT_THAT(refusal_of(graph({2})), HasSubstr("(Add): scaling"));
}

TEST(ExamplesOfARun, MustHaveTheShapeOfTheSavedModel) {
  RunConfig saved;
  saved.model.input = {.height = 28, .width = 1, .channels = 28};
  RunConfig run;
  EXPECT_EQ(other_examples(run, to_saved_json(run)), std::nullopt);
  EXPECT_THAT(other_examples(run, to_saved_json(saved)).value_or(""),
              StartsWith("its model takes examples of 28x1x28, and those of this run are 28x28x1"));
  EXPECT_EQ(other_examples(run, "{}"), std::nullopt);  // of another release
}

// ---- Files of variables ----

// disttf has no layers for them, and no program to give them to.
TEST(ImportOfWeights, OfAProgramNeedAModel) {
  TrainedModel model;
  model.config.model.variables = {{.name = "sm_w", .shape = {4, 2}},
                                  {.name = "sm_b", .shape = {2}}};
  const math::ParameterLayout layout = math::layout_of(model.config.model);
  model.parameters = math::AlignedVector(layout.size());
  model.parameters.span()[3] = 2.5F;
  const std::string bytes = safetensors_model(model, facts_of(model));
  const std::span file(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  ImportWishes wishes;
  EXPECT_THAT(sentence_of([&] { return import_model(file, "x", wishes); }),
              HasSubstr("--model: missing; x does not name the model of its variables"));
  wishes.names_model = true;
  wishes.config.model.kind = math::ModelKind::kSoftmax;
  wishes.input = math::Shape{.channels = 4};
  wishes.classes = 2;
  const ImportedModel imported = import_model(file, "x", wishes);
  EXPECT_FALSE(imported.model.config.model.is_program());
  EXPECT_EQ(imported.model.parameters.span()[3], 2.5F);
}

TEST(ImportOfWeights, AreOfTheModelThatIsNamed) {
  TrainedModel model =
      model_of({.height = 2, .width = 2}, {layer("dense", {{"units", 3.0}}, "a")}, 3);
  const std::string bytes = npz_model(model, {});
  ImportWishes wishes{
      .names_model = true, .input = math::Shape{.height = 2, .width = 2}, .classes = 3};
  EXPECT_THAT(refusal_of(bytes), StartsWith("--model: missing; m does not name"));
  wishes.config.model.layers = model.config.model.layers;
  const ImportedModel read = imported(bytes, wishes);
  EXPECT_EQ(read.model.weights_sha256, model.weights_sha256);
  wishes.config.model.layers[0].fields["units"] = 4.0;
  wishes.classes = 4;
  EXPECT_EQ(refusal_of(bytes, wishes), "m: \"a_w\" has the shape [4, 3], in the model [4, 4]");
  wishes.config.model.layers[0].name = "b";
  EXPECT_EQ(refusal_of(bytes, wishes),
            "m: it lacks \"b_w\", which the model has with the shape [4, 4]");
}

TEST(ImportOfWeights, OfASmallFileAreNoHugeModel) {
  const TrainedModel model =
      model_of({.height = 2, .width = 2}, {layer("dense", {{"units", 3.0}}, "a")}, 3);
  ImportWishes wishes{
      .names_model = true, .input = math::Shape{.height = 2, .width = 2}, .classes = 200};
  wishes.config.model.layers = {layer("dense", {{"units", 200.0}}, "a")};
  EXPECT_THAT(refusal_of(safetensors_model(model, {}), wishes),
              HasSubstr("too few for the 1000 parameters of the model"));
  // An archive may be compressed, so only the memory decides.
  std::uint64_t required = 0;
  wishes.require_memory = [&required](std::uint64_t bytes) {
    required = bytes;
    throw std::invalid_argument("too much");
  };
  EXPECT_EQ(refusal_of(npz_model(model, {}), wishes), "too much");
  EXPECT_GE(required, 1000 * sizeof(float));
}

TEST(ImportOfWeights, WhatIsNoNumberIsRefused) {
  TrainedModel model = model_of_numbers();
  model.parameters.data()[1] = std::numeric_limits<float>::quiet_NaN();
  for (const std::string& bytes :
       {npz_model(model, facts_of(model)), safetensors_model(model, facts_of(model))}) {
    EXPECT_THAT(refusal_of(bytes),
                HasSubstr("\"dense1_w\" contains a value that is not a finite number"));
  }
}

}  // namespace
}  // namespace disttf::roles
