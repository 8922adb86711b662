#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "data/little_endian.h"
#include "data/protobuf.h"
#include "model/export/answer_steps.h"
#include "model/weight_order.h"

namespace disttf::roles {
namespace {

using data::ProtobufMessage;
using Counts = std::vector<std::int64_t>;

// The versions of ONNX 1.8; newer runtimes read them, too.
constexpr std::uint64_t kIrVersion = 7;
constexpr std::uint64_t kOpset = 13;
// TensorProto.DataType
constexpr std::uint64_t kOnnxFloat = 1;
constexpr std::uint64_t kOnnxInt64 = 7;

std::int64_t count(std::size_t value) { return static_cast<std::int64_t>(value); }

// AttributeProto: name 1, f 2, i 3, ints 8, type 20 (FLOAT 1, INT 2, INTS 7)
ProtobufMessage number_attribute(std::string_view name, std::int64_t value) {
  return ProtobufMessage()
      .add_bytes(1, name)
      .add_number(3, static_cast<std::uint64_t>(value))
      .add_number(20, 2);
}

ProtobufMessage float_attribute(std::string_view name, float value) {
  return ProtobufMessage().add_bytes(1, name).add_float(2, value).add_number(20, 1);
}

ProtobufMessage numbers_attribute(std::string_view name, const Counts& values) {
  ProtobufMessage attribute;
  attribute.add_bytes(1, name);
  for (const std::int64_t value : values) {
    attribute.add_number(8, static_cast<std::uint64_t>(value));
  }
  return attribute.add_number(20, 7);
}

// ValueInfoProto of floats, [N, sizes...]: name 1, type 2 {tensor_type 1 {elem_type 1, shape 2 {dim
// 1 {dim_value 1, dim_param 2}}}}
ProtobufMessage value_info(std::string_view name, const Counts& sizes) {
  ProtobufMessage shape;
  shape.add_message(1, ProtobufMessage().add_bytes(2, "N"));
  for (const std::int64_t size : sizes) {
    shape.add_message(1, ProtobufMessage().add_number(1, static_cast<std::uint64_t>(size)));
  }
  const ProtobufMessage tensor = ProtobufMessage().add_number(1, kOnnxFloat).add_message(2, shape);
  return ProtobufMessage().add_bytes(1, name).add_message(2,
                                                          ProtobufMessage().add_message(1, tensor));
}

class OnnxGraph {
 public:
  explicit OnnxGraph(const AnswerSteps& answer) : answer_(answer), last_(answer.input_name) {}

  ProtobufMessage make() && {
    for (step_ = 0; step_ < answer_.steps.size(); ++step_) {
      std::visit([this](const auto& operation) { add(operation); }, step().operation);
    }
    const math::Shape& input = answer_.input;
    const Counts sizes =
        answer_.takes_image ? Counts{count(input.channels), count(input.height), count(input.width)}
                            : Counts{count(input.channels)};
    graph_.add_bytes(2, "disttf");
    graph_.add_message(11, value_info(answer_.input_name, sizes));
    graph_.add_message(12, value_info(answer_.output_name, {count(answer_.outputs)}));
    return std::move(graph_);
  }

 private:
  [[nodiscard]] const AnswerStep& step() const { return answer_.steps[step_]; }

  // NodeProto: input 1, output 2, name 3, op_type 4, attribute 5. Adds a node whose first input is
  // the output of the node before. `suffix`: set for all but the last node of a step.
  void add_node(std::string_view type, std::initializer_list<std::string_view> more = {},
                std::initializer_list<ProtobufMessage> attributes = {},
                std::string_view suffix = "") {
    const std::string name = step().name + std::string(suffix);
    // The last node's output must have the name of the graph's output.
    const bool is_last = suffix.empty() && step_ + 1 == answer_.steps.size();
    ProtobufMessage node;
    node.add_bytes(1, last_);
    for (const std::string_view input : more) {
      node.add_bytes(1, input);
    }
    // No variable's name contains a slash, so this name is unique.
    last_ = is_last ? std::string(answer_.output_name) : name + "/out";
    node.add_bytes(2, last_).add_bytes(3, name).add_bytes(4, type);
    for (const ProtobufMessage& attribute : attributes) {
      node.add_message(5, attribute);
    }
    graph_.add_message(1, node);
  }

  // TensorProto: dims 1, data_type 2, name 8, raw_data 9. Returns the name: "hid_w".
  std::string add_constant(std::string_view suffix, const Counts& sizes,
                           std::span<const float> values) {
    return add_tensor(suffix, sizes, kOnnxFloat,
                      // raw_data is little-endian, as all supported processors are.
                      {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  std::string add_counts(std::string_view suffix, const Counts& values) {
    return add_tensor(suffix, {count(values.size())}, kOnnxInt64,
                      {reinterpret_cast<const char*>(values.data()), values.size() * 8});
  }
  std::string add_tensor(std::string_view suffix, const Counts& sizes, std::uint64_t type,
                         std::string_view bytes) {
    std::string name = step().name + "_" + std::string(suffix);
    ProtobufMessage tensor;
    for (const std::int64_t size : sizes) {
      tensor.add_number(1, static_cast<std::uint64_t>(size));
    }
    tensor.add_number(2, type).add_bytes(8, name).add_bytes(9, bytes);
    graph_.add_message(5, tensor);
    return name;
  }

  // `values`: one for all inputs, or one for each input.
  std::string add_input_constant(std::string_view suffix, std::span<const float> values) {
    const math::Shape& image = step().input;
    // A scalar is broadcast over all inputs.
    if (values.size() == 1) {
      return add_constant(suffix, {}, values);
    }
    if (!step().takes_image) {
      return add_constant(suffix, {count(values.size())}, values);
    }
    return add_constant(suffix, {count(image.channels), count(image.height), count(image.width)},
                        channels_first(values, image));
  }

  void add(const InputScaling& scaling) {
    if (!scaling.means.empty()) {
      add_node("Sub", {add_input_constant("mean", scaling.means)}, {}, "/centred");
    }
    add_node("Mul", {add_input_constant("factor", scaling.factors)});
  }

  void add(const Imaging& /*imaging*/) { add_node("Unsqueeze", {add_counts("axes", {2, 3})}); }

  void add(const math::DenseProduct& product) {
    std::vector<float> weights = step().variables[0];
    if (flattened_) {
      weights = channels_first(weights, *flattened_);
      // Behind the product the numbers have no order of an image any more.
      flattened_.reset();
    }
    const Counts sizes = {count(weights.size() / product.units), count(product.units)};
    // Weights are [inputs, units] in disttf, which is Gemm without transposition.
    add_node("Gemm", {add_constant("w", sizes, weights),
                      add_constant("b", {count(product.units)}, step().variables[1])});
  }

  void add(const math::ConvolutionOfImage& convolution) {
    const std::int64_t kernel = count(convolution.kernel);
    const std::size_t channels = step().input.channels;
    const std::vector<float> weights =
        units_first(step().variables[0], {.places = convolution.kernel * convolution.kernel,
                                          .channels = channels,
                                          .units = convolution.units});
    const auto& padding = convolution.padding;
    add_node(
        "Conv",
        {add_constant("w", {count(convolution.units), count(channels), kernel, kernel}, weights),
         add_constant("b", {count(convolution.units)}, step().variables[1])},
        {numbers_attribute("kernel_shape", {kernel, kernel}),
         numbers_attribute(
             "pads", {count(padding[0]), count(padding[1]), count(padding[2]), count(padding[3])}),
         numbers_attribute("strides", {count(convolution.stride), count(convolution.stride)})});
  }

  void add(const math::PoolingOfImage& pooling) {
    add_node(pooling.is_mean ? "AveragePool" : "MaxPool", {},
             {numbers_attribute("kernel_shape", {count(pooling.size), count(pooling.size)}),
              numbers_attribute("strides", {count(pooling.stride), count(pooling.stride)})});
  }

  void add(const math::ElementFunction& function) {
    // Indexed by ElementFunction.
    constexpr std::array kTypes = {"Relu", "Tanh", "Sigmoid"};
    add_node(kTypes.at(static_cast<std::size_t>(function)));
  }

  void add(const math::ChannelNormalization& normalization) {
    constexpr std::array kNames = {"gamma", "beta", "mean", "variance"};
    std::array<std::string, kNames.size()> names;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      std::vector<float> values = step().variables[i];
      if (flattened_) {
        values = channels_first(values, *flattened_);
      }
      // Channels stay in order except behind a flattened image, where each number is a channel.
      names.at(i) = add_constant(kNames.at(i), {count(values.size())}, values);
    }
    add_node("BatchNormalization", {names[0], names[1], names[2], names[3]},
             {float_attribute("epsilon", normalization.epsilon)});
  }

  // The flattened numbers are in channel, height, width order. The next dense layer's weights are
  // permuted to match; without a dense layer before the order matters, the numbers are.
  void add(const math::Flattening& /*flattening*/) {
    const math::Shape& image = step().input;
    // Otherwise both orders are the same.
    if (image.channels != 1 && image.height * image.width != 1) {
      if (dense_follows()) {
        flattened_ = image;
      } else {
        add_node("Transpose", {}, {numbers_attribute("perm", {0, 2, 3, 1})}, "/turned");
      }
    }
    add_node("Flatten", {}, {number_attribute("axis", 1)});
  }

  [[nodiscard]] bool dense_follows() const {
    // Element functions and normalizations act on each number alone, so the order may wait.
    const auto decides = [](const AnswerStep& each) {
      return !std::holds_alternative<math::ElementFunction>(each.operation) &&
             !std::holds_alternative<math::ChannelNormalization>(each.operation);
    };
    const auto rest = std::span(answer_.steps).subspan(step_ + 1);
    const auto next = std::ranges::find_if(rest, decides);
    return next != rest.end() && std::holds_alternative<math::DenseProduct>(next->operation);
  }

  void add(const Probabilities& /*probabilities*/) {
    add_node("Softmax", {}, {number_attribute("axis", -1)});
  }

  void add(const OutputScaling& scaling) {
    // Division, as the predictor does it, and not multiplication by a rounded reciprocal.
    add_node("Div", {add_constant("scale", {}, std::span(&scaling.scale, 1))}, {}, "/unscaled");
    add_node("Add", {add_constant("mean", {}, std::span(&scaling.mean, 1))});
  }

  const AnswerSteps& answer_;
  std::size_t step_ = 0;
  std::string last_;       // output of the node before
  ProtobufMessage graph_;  // GraphProto: node 1, name 2, initializer 5, input 11, output 12
  // Shape of an image that was flattened channels first.
  std::optional<math::Shape> flattened_;
};

}  // namespace

// ModelProto: ir_version 1, producer_name 2, producer_version 3, graph 7, opset_import 8 {domain 1,
// version 2}, metadata_props 14 {key 1, value 2}
std::string onnx_model(const AnswerSteps& answer, const ModelFacts& facts,
                       const std::string& version) {
  ProtobufMessage model;
  model.add_number(1, kIrVersion).add_bytes(2, "disttf").add_bytes(3, version);
  model.add_message(7, OnnxGraph(answer).make());
  model.add_message(8, ProtobufMessage().add_bytes(1, "").add_number(2, kOpset));
  for (const auto& [key, value] : facts) {
    model.add_message(14, ProtobufMessage().add_bytes(1, key).add_bytes(2, value));
  }
  return model.bytes();
}

}  // namespace disttf::roles
