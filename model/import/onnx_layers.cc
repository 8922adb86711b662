#include "model/import/onnx_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "math/layers/registry.h"
#include "math/losses/registry.h"
#include "model/import/image_layout.h"
#include "model/import/image_scale.h"
#include "model/import/onnx_node.h"
#include "model/weight_order.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

using Wholes = std::vector<std::int64_t>;

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 32;
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

math::LossKind loss_with(math::AnswerFunction answer) {
  auto kind = math::LossKind{};
  // Ends: each of the answer functions has a loss, and the first one wins.
  while (math::loss_type(kind).answer_function != answer) {
    kind = static_cast<math::LossKind>(static_cast<std::size_t>(kind) + 1);
  }
  return kind;
}

void scale_all(std::vector<float>& values, float factor) {
  std::ranges::for_each(values, [factor](float& x) { x *= factor; });
}

class Chain {
 public:
  Chain(const OnnxFile& file, const std::string& where, const InputWishes& wishes)
      : file_(file), where_(where), value_(where, wishes) {
    for (const auto& [name, tensor] : file.constants) {
      // Pointers into `file`, which outlives the chain.
      constants_.emplace(name, &tensor);
    }
  }

  ImportedLayers make() && {
    begin();
    for (const OnnxNode& node : file_.nodes) {
      visit(node);
    }
    end();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument(where_ + ": " + why);
  }
  [[noreturn]] void refuse_node(const std::string& why) const { node_->refuse(why); }
  void require(bool is_good, std::string_view attribute, std::string_view supported) const {
    node_->require(is_good, attribute, supported);
  }

  // ---- The input ----

  void begin() {
    const OnnxValue& input = input_of(file_, where_);
    const auto is_size = [](std::int64_t size) {
      return size >= 1 && size <= static_cast<std::int64_t>(math::kMaxInputs);
    };
    const Wholes& sizes = input.sizes;
    if (sizes.size() < 2 || sizes.size() > 4 ||
        !std::all_of(sizes.begin() + 1, sizes.end(), is_size)) {
      refuse("the input " + net::quoted(input.name) +
             " must be [N, columns], [N, height, width], [N, channels, height, width] or [N, "
             "height, width, channels], with known sizes");
    }
    // Each node must take the value of this name; visit() moves it along the chain.
    last_ = input.name;
    value_.begin({sizes.begin() + 1, sizes.end()});
    take_input();
  }

  // Sets the model's input once its shape is known.
  void take_input() {
    result_.model.numbers = !value_.input_is_image();
    if (value_.is_decided()) {
      result_.model.input = value_.shape();
    }
  }

  // Decides the order of an input image; undecided until a node needs it.
  void decide(std::optional<ImageLayout> evidence) {
    if (value_.is_decided()) {
      return;
    }
    if (const auto note = value_.decide(*node_, evidence)) {
      result_.notes.push_back(*note);
    }
    take_input();
  }
  // Requires channels first, for operators that take them so.
  void require_channels_first() {
    if (value_.is_image()) {
      decide(ImageLayout::kChannelsFirst);
    }
    require(value_.is_channels_first(), "its input", "an image, its channels first");
  }

  // ---- A node ----

  void visit(const OnnxNode& node) {
    ChainNode read(node, where_);
    node_ = &read;
    read.check();
    if (node.type == "Constant") {
      // Points into the node's attribute in `file_`, not into `read`.
      constants_.insert_or_assign(node.outputs.front(), &read.constant());
      return;
    }
    using Use = void (Chain::*)();
    static constexpr std::array<std::pair<std::string_view, Use>, 23> kUses = {{
        {"Gemm", &Chain::gemm},
        {"MatMul", &Chain::matrix_product},
        {"Conv", &Chain::convolution},
        {"MaxPool", &Chain::pooling},
        {"AveragePool", &Chain::pooling},
        {"BatchNormalization", &Chain::normalization},
        {"Relu", &Chain::element_function},
        {"Tanh", &Chain::element_function},
        {"Sigmoid", &Chain::element_function},
        {"Flatten", &Chain::flatten},
        {"Reshape", &Chain::reshape},
        {"Transpose", &Chain::transpose},
        {"Unsqueeze", &Chain::unsqueeze},
        {"Squeeze", &Chain::squeeze},
        {"Softmax", &Chain::softmax},
        {"LogSoftmax", &Chain::softmax},
        {"Add", &Chain::scale},
        {"Sub", &Chain::scale},
        {"Mul", &Chain::scale},
        {"Div", &Chain::scale},
        {"Identity", &Chain::pass},
        {"Dropout", &Chain::pass},
        {"Cast", &Chain::pass},
    }};
    const auto* const use =
        std::ranges::find(kUses, node.type, &std::pair<std::string_view, Use>::first);
    if (use == kUses.end()) {
      refuse_node("this operator is not supported");
    }
    // Before the operator's function, which reads the operands.
    read.take_operands(last_, constants_);
    // Nothing after the answer can be expressed as a layer.
    if (is_over_) {
      refuse_node("it follows the answer, which is not supported");
    }
    (this->*use->second)();
    // Further outputs, such as a dropout mask, are ignored; a node that takes one is refused.
    last_ = node.outputs.front();
  }

  // ---- Layers ----

  // `variables`: in the layer's layout.
  void add(const math::LayerOperation& operation, std::vector<std::vector<float>> variables = {}) {
    if (is_answer_scaled_) {  // the scaling of what was no answer would be lost
      refuse_node("it follows the scaling of an output of one number, which must be the answer");
    }
    math::LayerSpec spec = *math::layer_that_does(operation);
    if (!variables.empty()) {
      spec.name = name_of_layer();
    }
    const auto layer = make_or_refuse(spec);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      check_variable(layer->variables()[i], variables[i]);
    }
    value_.set_shape(layer->output());
    result_.model.layers.push_back(std::move(spec));
    std::ranges::move(variables, std::back_inserter(result_.variables));
    // Weights and biases. The vectors are moved from, but `variables` keeps its own size.
    has_open_bias_ = variables.size() == 2;
  }

  void check_variable(const math::LayerVariable& variable, const std::vector<float>& values) const {
    std::size_t size = 1;
    for (const std::size_t each : variable.shape) {
      size *= each;
    }
    if (values.size() != size) {
      refuse_node("its " + std::string(variable.suffix) + " has " + std::to_string(values.size()) +
                  " numbers; its input needs " + std::to_string(size));
    }
    // Non-finite weights would make the first step diverge.
    if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) {
      refuse_node("its " + std::string(variable.suffix) +
                  " contains a value that is not a finite number");
    }
  }

  // The node's name, or its first constant's up to a separator.
  [[nodiscard]] std::string name_of_layer() const {
    // Names must be plain and unique; otherwise the layer gets a default name.
    const auto is_free = [this](const std::string& name) {
      return is_plain_name(name) &&
             std::ranges::find(result_.model.layers, name, &math::LayerSpec::name) ==
                 result_.model.layers.end();
    };
    const std::string constant = node_->constant_name();
    const std::string stem = constant.substr(0, constant.find('.'));
    return is_free(node_->name()) ? node_->name() : is_free(stem) ? stem : std::string();
  }

  void gemm() {
    require(node_->is_first() && node_->whole("transA", 0) == 0, "transA and the second factor",
            "0 and a constant");
    const OnnxTensor& weights = node_->floats(0, "weights", 2);
    const bool is_turned = node_->whole("transB", 0) != 0;
    std::vector<float> biases;
    if (node_->has_operand(1)) {
      biases = node_->operand(1).floats;
      require(!biases.empty(), "the biases", "floats");
      // Gemm is alpha * A * B + beta * C; the factors become part of the variables.
      scale_all(biases, node_->number("beta", 1));
    }
    add_dense(weights, is_turned, node_->number("alpha", 1), std::move(biases));
  }

  void matrix_product() {
    require(node_->is_first(), "the second factor", "a constant");
    add_dense(node_->floats(0, "weights", 2), false, 1, {});
  }

  void add_dense(const OnnxTensor& tensor, bool is_turned, float factor,
                 std::vector<float> biases) {
    require(!value_.is_image(), "an image as its input", "behind Flatten");
    const auto rows = static_cast<std::size_t>(tensor.sizes[is_turned ? 1 : 0]);
    const auto units = static_cast<std::size_t>(tensor.sizes[is_turned ? 0 : 1]);
    // Before channels_last(), which assumes a row for each number of the image.
    if (rows != value_.shape().size()) {
      refuse_node("its weights are for " + std::to_string(rows) + " inputs, but there are " +
                  std::to_string(value_.shape().size()));
    }
    std::vector<float> weights =
        is_turned ? units_last(tensor.floats, {.places = 1, .channels = rows, .units = units})
                  : tensor.floats;
    // Behind a flattened image the rows are in channels-first order; disttf has channels last.
    if (value_.flattened()) {
      weights = channels_last(weights, *value_.flattened());
      value_.forget_flattened();
    }
    scale_all(weights, factor);
    // ONNX broadcasts one number over all units.
    if (biases.size() == 1) {
      biases.assign(units, biases.front());
    }
    biases.resize(biases.empty() ? units : biases.size());
    // Padding does not matter to a dense layer, so an offset can be moved into its biases.
    scale_input_of(weights, biases, true);
    add(math::DenseProduct{.units = units}, {std::move(weights), std::move(biases)});
  }

  void convolution() {
    require(node_->is_first(), "the first input", "the output of the node before");
    require_channels_first();
    const OnnxTensor& tensor = node_->floats(0, "weights", 4);
    const auto size = [&](std::size_t at) { return static_cast<std::size_t>(tensor.sizes[at]); };
    const Wholes strides = node_->wholes("strides", {1, 1});
    require(size(2) == size(3), "kernel_shape", "a square");
    require(strides.size() == 2 && strides[0] == strides[1] && strides[0] > 0, "strides",
            "two equal numbers");
    require(node_->whole("group", 1) == 1, "group", "1");
    require(node_->all_are("dilations", 1), "dilations", "1");
    if (size(1) != value_.shape().channels) {
      refuse_node("its weights are for " + std::to_string(size(1)) + " channels, but there are " +
                  std::to_string(value_.shape().channels));
    }
    math::ConvolutionOfImage operation{
        .kernel = size(2), .units = size(0), .stride = static_cast<std::size_t>(strides[0])};
    // Needs kernel and stride, which the padding of SAME depends on.
    operation.is_same = is_same(operation);
    std::vector<float> biases(size(0));
    if (node_->has_operand(1)) {
      biases = node_->floats(1, "biases", 1).floats;
      require(biases.size() == size(0), "the number of biases", "that of the units");
    }
    std::vector<float> weights = units_last(
        tensor.floats, {.places = size(2) * size(3), .channels = size(1), .units = size(0)});
    // SAME padding adds zeros, which the offset would have changed.
    scale_input_of(weights, biases, !operation.is_same);
    add(operation, {std::move(weights), std::move(biases)});
  }

  // Whether its padding equals TensorFlow's SAME; otherwise it must have none.
  [[nodiscard]] bool is_same(const math::ConvolutionOfImage& operation) const {
    const std::string automatic = node_->text("auto_pad", "NOTSET");
    if (automatic == "VALID" || automatic == "SAME_UPPER") {
      return automatic == "SAME_UPPER";
    }
    require(automatic == "NOTSET", "auto_pad", "NOTSET, VALID, SAME_UPPER");
    const Wholes pads = node_->wholes("pads", {0, 0, 0, 0});
    math::LayerOperation same = math::ConvolutionOfImage{
        .kernel = operation.kernel, .units = operation.units, .stride = operation.stride};
    const auto layer = make_or_refuse(*math::layer_that_does(same));
    const auto padding = std::get<math::ConvolutionOfImage>(layer->operation()).padding;
    const Wholes wanted(padding.begin(), padding.end());
    // Also without any padding, e.g. for a kernel of 1: SAME and VALID are equal then.
    if (pads == wanted) {
      return true;
    }
    require(std::ranges::all_of(pads, [](std::int64_t pad) { return pad == 0; }), "pads",
            "none, or " + std::to_string(wanted[0]) + ", " + std::to_string(wanted[1]) + ", " +
                std::to_string(wanted[2]) + ", " + std::to_string(wanted[3]));
    return false;
  }

  [[nodiscard]] std::unique_ptr<const math::Layer> make_or_refuse(
      const math::LayerSpec& spec) const {
    try {
      return math::make_layer(spec, value_.shape());
    } catch (const std::invalid_argument& error) {
      refuse_node(error.what());
    }
  }

  void pooling() {
    require_channels_first();
    const Wholes kernel = node_->wholes("kernel_shape", {});
    const Wholes strides = node_->wholes("strides", {1, 1});
    require(kernel.size() == 2 && kernel[0] == kernel[1] && kernel[0] > 0, "kernel_shape",
            "a square");
    require(strides.size() == 2 && strides[0] == strides[1] && strides[0] > 0, "strides",
            "two equal numbers");
    require(node_->all_are("pads", 0), "pads", "0");
    require(node_->all_are("dilations", 1), "dilations", "1");
    require(node_->whole("ceil_mode", 0) == 0, "ceil_mode", "0");
    const std::string padding = node_->text("auto_pad", "NOTSET");
    require(padding == "NOTSET" || padding == "VALID", "auto_pad", "VALID");
    // Only a product can take in another factor or an offset; disttf itself scales by 1/255.
    require(scale_.is_usual(), "scaling before it", "multiplication by 1/255");
    add(math::PoolingOfImage{.is_mean = node_->type() == "AveragePool",
                             .size = static_cast<std::size_t>(kernel[0]),
                             .stride = static_cast<std::size_t>(strides[0])});
  }

  void normalization() {
    require(node_->is_first(), "the first input", "the output of the node before");
    if (value_.is_image()) {
      require_channels_first();
    }
    require(node_->whole("training_mode", 0) == 0, "training_mode", "0");
    require(scale_.is_usual(), "scaling before it", "multiplication by 1/255");
    std::vector<std::vector<float>> variables;
    for (const char* what : {"scale", "bias", "mean", "variance"}) {
      std::vector<float> values = node_->floats(variables.size(), what, 1).floats;
      if (value_.flattened() && values.size() == value_.flattened()->size()) {
        values = channels_last(values, *value_.flattened());
      }
      variables.push_back(std::move(values));
    }
    add(math::ChannelNormalization{.epsilon = node_->number("epsilon", 1e-5F)},
        std::move(variables));
  }

  void element_function() {
    using math::ElementFunction;
    const bool is_last = node_->given() == file_.outputs.front().name;
    // As the last node it is the answer, which the loss computes itself.
    if (node_->type() == "Sigmoid" && is_last) {
      answer_ = math::AnswerFunction::kSigmoid;
      is_over_ = true;
      return;
    }
    require(scale_.is_usual(), "scaling before it", "multiplication by 1/255");
    // The function works in either order, but add() needs the shape.
    decide(std::nullopt);
    add(node_->type() == "Relu"   ? ElementFunction::kRelu
        : node_->type() == "Tanh" ? ElementFunction::kTanh
                                  : ElementFunction::kSigmoid);
  }

  void flatten() {
    require(node_->whole("axis", 1) == 1, "axis", "1");
    flatten_image();
  }
  void reshape() {
    require(node_->has_operand(0), "a shape", "a constant");
    const Wholes& sizes = node_->operand(0).numbers;
    if (sizes.size() == 3 || sizes.size() == 4) {
      reshape_to_image(sizes);
      return;
    }
    decide_if_image();
    const bool is_row =
        sizes.size() == 2 &&
        (sizes[1] == -1 || sizes[1] == static_cast<std::int64_t>(value_.shape().size()));
    require(is_row, "a shape", "[N, all numbers of an example]");
    flatten_image();
  }
  void reshape_to_image(const Wholes& sizes) {
    require(!is_table_scaled_, "scaling of a row that becomes an image", "with --input HxWxC");
    value_.reshape_to_image(*node_, sizes, result_.model.layers.empty());
    take_input();
  }
  void decide_if_image() {
    if (value_.is_image()) {
      decide(std::nullopt);
    }
  }
  void flatten_image() {
    decide_if_image();
    if (value_.is_image()) {
      value_.flatten();
      add(math::Flattening{});
    }
  }

  void transpose() {
    const bool was_decided = value_.is_decided();
    value_.transpose(*node_);
    if (!was_decided) {
      take_input();
    }
  }

  // The axes are an attribute before opset 13 and an operand from 13 on.
  [[nodiscard]] Wholes axes() const {
    return node_->has_operand(0) ? node_->operand(0).numbers : node_->wholes("axes", {});
  }
  void unsqueeze() {
    const Wholes at = axes();
    require(at.size() == 1 && (at[0] == 1 || at[0] == 3 || at[0] == -1) && value_.is_grey_plane(),
            "axes", "1 or 3 of [N, height, width]");
    const auto height = static_cast<std::int64_t>(value_.shape().height);
    const auto width = static_cast<std::int64_t>(value_.shape().width);
    reshape_to_image(at[0] == 1 ? Wholes{-1, 1, height, width} : Wholes{-1, height, width, 1});
  }
  void squeeze() {
    const Wholes at = axes();
    require(at.size() == 1 && value_.is_image(), "axes", "the channel of a grey image");
    if (at[0] == 1) {
      decide(ImageLayout::kChannelsFirst);
    } else {
      decide(ImageLayout::kChannelsLast);
    }
    const bool is_channel = value_.shape().channels == 1 &&
                            (at[0] == 1 ? value_.is_channels_first()
                                        : (at[0] == 3 || at[0] == -1) && value_.is_channels_last());
    require(is_channel, "axes", "the channel of a grey image");
  }

  void pass() {
    require(node_->is_first(), "the first input", "the output of the node before");
    if (node_->type() == "Cast") {
      require(result_.model.layers.empty() && node_->whole("to", 0) == 1, "a cast",
              "to float, before the first layer");
    }
  }

  // ---- Scaling ----

  void scale() {
    require(node_->has_operand(0) && !node_->operand(0).floats.empty(), "an operand",
            "a constant of floats");
    require(node_->is_first() || node_->type() == "Add" || node_->type() == "Mul",
            "the second operand", "a constant");
    const std::vector<float>& values = node_->operand(0).floats;
    std::vector<float>* const biases = has_open_bias_ ? &result_.variables.back() : nullptr;
    // MatMul followed by Add is a dense layer with biases.
    // Exact: an addition directly behind the product, before any function.
    if (biases != nullptr && node_->type() == "Add" &&
        (values.size() == 1 || is_of_channels(node_->operand(0), biases->size()))) {
      for (std::size_t i = 0; i < biases->size(); ++i) {
        (*biases)[i] += values[values.size() == 1 ? 0 : i];
      }
    } else if (result_.model.layers.empty()) {
      scale_input(values);
    } else {
      require(value_.shape().size() == 1, "scaling",
              "before the first layer, or of an answer of one number");
      // Dropped with a note: the run that continues scales targets by its own data.
      is_answer_scaled_ = true;
      has_open_bias_ = false;
    }
  }

  // Whether the constant has one number for each channel of the node's input.
  [[nodiscard]] bool is_of_channels(const OnnxTensor& tensor, std::size_t channels) const {
    const std::size_t behind = value_.is_channels_first() ? 2 : 0;  // sizes behind the channels'
    const std::size_t rank = tensor.sizes.size();
    return tensor.floats.size() == channels && rank > behind &&
           tensor.sizes[rank - 1 - behind] == static_cast<std::int64_t>(channels);
  }

  void scale_input(const std::vector<float>& values) {
    // Columns are scaled by the run's own statistics.
    if (result_.model.numbers) {
      is_table_scaled_ = true;
      return;
    }
    require(std::ranges::all_of(values, [&](float x) { return x == values.front(); }),
            "scaling of an image", "one number for all of it");
    scale_.then(node_->type(), double{values.front()});
  }

  // `takes_offset`: the image is not padded with zeros.
  void scale_input_of(std::vector<float>& weights, std::vector<float>& biases, bool takes_offset) {
    require(takes_offset || !scale_.has_offset(), "an offset of its input",
            "before Gemm, or Conv without pads");
    scale_.move_into(weights, biases);
  }

  // ---- The answer ----

  void softmax() {
    // The default axis changed in opset 13.
    // Both are the classes here, since the value is a row.
    const std::int64_t axis = node_->whole("axis", file_.opset >= 13 ? -1 : 1);
    require(axis == -1 || axis == 1, "axis", "that of the classes");
    require(!value_.is_image(), "its input", "a row of numbers");
    answer_ = math::AnswerFunction::kSoftmax;
    is_over_ = true;
  }

  void end() {
    if (file_.outputs.size() != 1 || file_.outputs.front().name != last_) {
      refuse("its output is not the last node's; must be a chain of nodes with one output");
    }
    if (value_.flattened() || value_.is_image()) {
      refuse("its output is an image, which is not supported");
    }
    math::ModelSpec& model = result_.model;
    model.classes = value_.shape().size();
    // Frameworks often export a classifier without its softmax.
    if (!answer_) {  // logits, or a number
      answer_ =
          model.classes == 1 ? math::AnswerFunction::kIdentity : math::AnswerFunction::kSoftmax;
    }
    model.loss = loss_with(*answer_);
    if (is_table_scaled_ || is_answer_scaled_) {
      result_.notes.push_back(where_ + ": its scaling of " +
                              (is_table_scaled_ ? "columns" : "its answer") +
                              " is not imported: a run scales by its own data");
    }
    try {
      math::validate(model);
    } catch (const std::invalid_argument& error) {
      refuse(error.what());
    }
  }

  const OnnxFile& file_;
  const std::string& where_;
  OnnxConstants constants_;
  ImportedLayers result_;
  const ChainNode* node_ = nullptr;  // the current node
  std::string last_;                 // output of the node before
  ValueShape value_;                 // shape of that output
  bool has_open_bias_ = false;       // the last variable is the bias of the layer before
  ImageScale scale_;                 // before the first layer
  bool is_table_scaled_ = false;
  bool is_answer_scaled_ = false;
  bool is_over_ = false;  // the answer is complete
  std::optional<math::AnswerFunction> answer_;
};

}  // namespace

ImportedLayers layers_of_onnx(const OnnxFile& file, const std::string& where,
                              const InputWishes& wishes) {
  if (file.outputs.empty()) {
    throw std::invalid_argument(where + ": it has no output");
  }
  return Chain(file, where, wishes).make();
}

}  // namespace disttf::roles
