#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "data/protobuf.h"
#include "model/export/answer_steps.h"

namespace disttf::roles {
namespace {

using data::ProtobufMessage;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kAnyCount = -1;
// DataType
constexpr std::uint64_t kTensorFloat = 1;
constexpr std::uint64_t kTensorInt32 = 3;
// Graph version of TensorFlow 1.15; every operation used here is older.
constexpr std::uint64_t kGraphProducer = 134;

// TensorShapeProto: dim 2 {size 1}
ProtobufMessage shape_proto(const Sizes& sizes) {
  ProtobufMessage shape;
  for (const std::int64_t size : sizes) {
    shape.add_message(2, ProtobufMessage().add_number(1, static_cast<std::uint64_t>(size)));
  }
  return shape;
}

// AttrValue: s 2, f 4, b 5, type 6, shape 7, tensor 8, list 1 {i 3}
struct Attribute {
  std::string_view name;
  ProtobufMessage value;
};
Attribute type_attribute(std::string_view name, std::uint64_t type) {
  return {.name = name, .value = ProtobufMessage().add_number(6, type)};
}
Attribute text_attribute(std::string_view name, std::string_view text) {
  return {.name = name, .value = ProtobufMessage().add_bytes(2, text)};
}
// Sizes of batch and channels are 1.
Attribute window_attribute(std::string_view name, std::size_t size) {
  ProtobufMessage list;
  for (const std::uint64_t each :
       {std::uint64_t{1}, std::uint64_t{size}, std::uint64_t{size}, std::uint64_t{1}}) {
    list.add_number(3, each);
  }
  return {.name = name, .value = ProtobufMessage().add_message(1, list)};
}

class TensorFlowGraph {
 public:
  explicit TensorFlowGraph(const AnswerSteps& answer) : answer_(answer) {}

  ProtobufMessage make() && {
    const Sizes sizes = input_sizes();
    last_ = answer_.input_name;
    add(last_, "Placeholder", kTensorFloat,
        {.name = "shape", .value = ProtobufMessage().add_message(7, shape_proto(sizes))});
    for (const AnswerStep& each : answer_.steps) {
      step_ = &each;
      std::visit([this](const auto& operation) { add_step(operation); }, each.operation);
    }
    // The output has the name that the signature gives it.
    ProtobufMessage answer;
    answer.add_bytes(1, answer_.output_name).add_bytes(2, "Identity").add_bytes(3, last_);
    // TensorFlow requires the attribute T of every operation.
    add_attribute(answer, type_attribute("T", kTensorFloat));
    graph_.add_message(1, answer);
    // versions 4 {producer 1}
    return std::move(graph_.add_message(4, ProtobufMessage().add_number(1, kGraphProducer)));
  }

  [[nodiscard]] Sizes input_sizes() const {
    const math::Shape& shape = answer_.input;
    return answer_.takes_image ? Sizes{kAnyCount, static_cast<std::int64_t>(shape.height),
                                       static_cast<std::int64_t>(shape.width),
                                       static_cast<std::int64_t>(shape.channels)}
                               : Sizes{kAnyCount, static_cast<std::int64_t>(shape.channels)};
  }

 private:
  // NodeDef: attr 5, a map {key 1, value 2}
  static void add_attribute(ProtobufMessage& node, const Attribute& attribute) {
    node.add_message(
        5, ProtobufMessage().add_bytes(1, attribute.name).add_message(2, attribute.value));
  }

  // Adds a node without an input. GraphDef: node 1 {name 1, op 2, input 3, attr 5}
  void add(std::string_view name, std::string_view type, std::uint64_t dtype,
           const Attribute& more) {
    ProtobufMessage node;
    node.add_bytes(1, name).add_bytes(2, type);
    add_attribute(node, type_attribute("dtype", dtype));
    add_attribute(node, more);
    graph_.add_message(1, node);
  }

  // Adds a node of floats whose inputs are the node before and, unless empty, a constant.
  void continue_with(std::string_view type, std::string_view constant,
                     std::initializer_list<Attribute> attributes = {}) {
    // Unique: the names of steps are, and no step has two operations of one type.
    const std::string name = step_->name + "/" + std::string(type);
    ProtobufMessage node;
    node.add_bytes(1, name).add_bytes(2, type).add_bytes(3, last_);
    if (!constant.empty()) {
      node.add_bytes(3, constant);
    }
    add_attribute(node, type_attribute("T", kTensorFloat));
    for (const Attribute& each : attributes) {
      add_attribute(node, each);
    }
    graph_.add_message(1, node);
    last_ = name;
  }

  // TensorProto: dtype 1, tensor_shape 2, tensor_content 4
  std::string add_tensor(std::string_view suffix, std::uint64_t type, const Sizes& sizes,
                         std::string_view bytes) {
    std::string name = step_->name + "/" + std::string(suffix);
    ProtobufMessage tensor;
    tensor.add_number(1, type).add_message(2, shape_proto(sizes)).add_bytes(4, bytes);
    add(name, "Const", type, {.name = "value", .value = ProtobufMessage().add_message(8, tensor)});
    return name;
  }
  std::string add_constant(std::string_view suffix, const Sizes& sizes,
                           std::span<const float> values) {
    return add_tensor(suffix, kTensorFloat, sizes,
                      {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  std::string add_vector(std::string_view suffix, std::span<const float> values) {
    return add_constant(suffix, {static_cast<std::int64_t>(values.size())}, values);
  }

  void reshape(const std::vector<std::int32_t>& sizes) {
    const std::string name =
        add_tensor("sizes", kTensorInt32, {static_cast<std::int64_t>(sizes.size())},
                   {reinterpret_cast<const char*>(sizes.data()), sizes.size() * 4});
    continue_with("Reshape", name, {type_attribute("Tshape", kTensorInt32)});
  }

  // `values`: one for all inputs, or one for each input.
  std::string add_input_constant(std::string_view suffix, std::span<const float> values) {
    if (values.size() == 1) {
      return add_constant(suffix, {}, values);
    }
    const Sizes all = input_sizes();
    return add_constant(suffix, {all.begin() + 1, all.end()}, values);
  }

  void add_step(const InputScaling& scaling) {
    if (!scaling.means.empty()) {
      continue_with("Sub", add_input_constant("mean", scaling.means));
    }
    continue_with("Mul", add_input_constant("factor", scaling.factors));
  }

  void add_step(const Imaging& /*imaging*/) {
    // -1 is the number of examples, which is unknown.
    reshape({-1, 1, 1, static_cast<std::int32_t>(step_->input.channels)});
  }
  void add_step(const math::Flattening& /*flattening*/) {
    reshape({-1, static_cast<std::int32_t>(step_->input.size())});
  }

  void add_step(const math::DenseProduct& product) {
    const auto& weights = step_->variables[0];
    const auto units = static_cast<std::int64_t>(product.units);
    continue_with(
        "MatMul",
        add_constant("w", {static_cast<std::int64_t>(weights.size()) / units, units}, weights));
    add_biases();
  }

  void add_biases() {
    continue_with("BiasAdd", add_vector("b", step_->variables[1]),
                  {text_attribute("data_format", "NHWC")});
  }

  void add_step(const math::ConvolutionOfImage& convolution) {
    const auto kernel = static_cast<std::int64_t>(convolution.kernel);
    const Sizes sizes = {kernel, kernel, static_cast<std::int64_t>(step_->input.channels),
                         static_cast<std::int64_t>(convolution.units)};
    continue_with("Conv2D", add_constant("w", sizes, step_->variables[0]),
                  {window_attribute("strides", convolution.stride),
                   // Convolutions of disttf pad as TensorFlow does, so no explicit padding is
                   // needed.
                   text_attribute("padding", convolution.is_same ? "SAME" : "VALID"),
                   text_attribute("data_format", "NHWC")});
    add_biases();
  }

  void add_step(const math::PoolingOfImage& pooling) {
    continue_with(
        pooling.is_mean ? "AvgPool" : "MaxPool", "",
        {window_attribute("ksize", pooling.size), window_attribute("strides", pooling.stride),
         text_attribute("padding", "VALID"), text_attribute("data_format", "NHWC")});
  }

  void add_step(const math::ElementFunction& function) {
    // Indexed by ElementFunction.
    constexpr std::array kTypes = {"Relu", "Tanh", "Sigmoid"};
    continue_with(kTypes.at(static_cast<std::size_t>(function)), "");
  }

  // Channels are the last dimension, along which both constants are broadcast.
  void add_step(const math::ChannelNormalization& normalization) {
    const auto& variables = step_->variables;
    std::vector<float> scales;
    std::vector<float> shifts;
    for (std::size_t c = 0; c < variables[0].size(); ++c) {
      const double scale = double{variables[0][c]} /
                           std::sqrt(double{variables[3][c]} + double{normalization.epsilon});
      scales.push_back(static_cast<float>(scale));
      // gamma * (x - mean) / sqrt(variance + epsilon) + beta as x * scale + shift, in double so
      // that each constant is rounded once.
      shifts.push_back(static_cast<float>(double{variables[1][c]} - variables[2][c] * scale));
    }
    continue_with("Mul", add_vector("scale", scales));
    continue_with("AddV2", add_vector("shift", shifts));
  }

  void add_step(const Probabilities& /*probabilities*/) { continue_with("Softmax", ""); }

  void add_step(const OutputScaling& scaling) {
    // The constants have no dimensions: they are broadcast over all examples.
    continue_with("RealDiv", add_constant("scale", {}, std::span(&scaling.scale, 1)));
    continue_with("AddV2", add_constant("mean", {}, std::span(&scaling.mean, 1)));
  }

  const AnswerSteps& answer_;
  const AnswerStep* step_ = nullptr;
  std::string last_;  // name of the node before
  ProtobufMessage graph_;
};

// Of SignatureDef's maps: key 1, value 2 {name 1, dtype 2, tensor_shape 3}
ProtobufMessage tensor_info(std::string_view name, const Sizes& sizes) {
  const ProtobufMessage info = ProtobufMessage()
                                   .add_bytes(1, std::string(name) + ":0")
                                   .add_number(2, kTensorFloat)
                                   .add_message(3, shape_proto(sizes));
  return ProtobufMessage().add_bytes(1, name).add_message(2, info);
}

}  // namespace

// SavedModel: saved_model_schema_version 1, meta_graphs 2 {meta_info_def 1 {tags 4}, graph_def 2,
// signature_def 5, a map {key 1, value 2 {inputs 1, outputs 2, method_name 3}}}
std::string saved_model(const AnswerSteps& answer) {
  const ProtobufMessage signature =
      ProtobufMessage()
          .add_message(1, tensor_info(answer.input_name, TensorFlowGraph(answer).input_sizes()))
          .add_message(2, tensor_info(answer.output_name,
                                      {kAnyCount, static_cast<std::int64_t>(answer.outputs)}))
          .add_bytes(3, "tensorflow/serving/predict");
  const ProtobufMessage graph =
      ProtobufMessage()
          .add_message(1, ProtobufMessage().add_bytes(4, "serve"))
          .add_message(2, TensorFlowGraph(answer).make())
          .add_message(5,
                       ProtobufMessage().add_bytes(1, "serving_default").add_message(2, signature));
  return ProtobufMessage().add_number(1, 1).add_message(2, graph).bytes();
}

}  // namespace disttf::roles
