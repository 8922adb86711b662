#include "model/export/answer_steps.h"

#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "math/losses/registry.h"

namespace disttf::roles {
namespace {

constexpr float kWhite = 255;

bool is_image(const math::Shape& shape) { return shape.height != 1 || shape.width != 1; }

// The step of an answer that does this operation; nullopt: the operation does nothing in inference.
std::optional<AnswerOperation> of_answer(const math::LayerOperation& operation) {
  return std::visit(
      [](const auto& each) -> std::optional<AnswerOperation> {
        // Dropout, for instance.
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, math::Nothing>) {
          return std::nullopt;
        } else {
          return each;
        }
      },
      operation);
}

class StepsOfModel {
 public:
  explicit StepsOfModel(const TrainedModel& model) : model_(model) {
    const math::ModelSpec& spec = model.config.model;
    result_ = {.input = spec.input,
               .takes_image = is_image(spec.input),
               .input_name = spec.numbers ? "numbers" : "images",
               .output_name = model.tells_numbers() ? "value" : "probabilities",
               .outputs = spec.classes,
               .steps = {}};
    shape_ = spec.input;
    is_image_ = result_.takes_image;
  }

  AnswerSteps make() && {
    scale_input();
    const math::ParameterLayout layout = math::layout_of(model_.config.model);
    std::size_t next = 0;  // index of the next variable of the layout
    for (const math::PlacedLayer& placed : math::make_layers(model_.config.model)) {
      std::vector<std::vector<float>> variables;
      for (std::size_t i = 0; i < placed.layer->variables().size(); ++i) {
        // Every layer counts, also one that is left out below: the layout has the variables of all.
        const math::Variable& variable = layout.variables()[next++];
        const auto values = model_.parameters.span().subspan(variable.offset, variable.size);
        variables.emplace_back(values.begin(), values.end());
      }
      add_layer(placed, std::move(variables));
    }
    if (is_image_) {
      // The loss reads a row, and so do the answer's last steps.
      add("flat", math::Flattening{}, {.channels = shape_.size()}, false);
    }
    add_answer();
    return std::move(result_);
  }

 private:
  void add(std::string name, AnswerOperation operation, const math::Shape& output, bool gives_image,
           std::vector<std::vector<float>> variables = {}) {
    result_.steps.push_back({.name = std::move(name),
                             .operation = std::move(operation),
                             .input = shape_,
                             .output = output,
                             .takes_image = is_image_,
                             .gives_image = gives_image,
                             .variables = std::move(variables)});
    shape_ = output;
    is_image_ = gives_image;
  }

  void scale_input() {
    const ExampleFacts& facts = model_.config.examples;
    if (!model_.is_of_numbers()) {
      // Training scales bytes by the same factor.
      add("scaling", InputScaling{.means = {}, .factors = {1 / kWhite}}, shape_, is_image_);
    } else if (!facts.means.empty()) {
      add("scaling", InputScaling{.means = facts.means, .factors = facts.scales}, shape_,
          is_image_);
    }
  }

  void add_layer(const math::PlacedLayer& placed, std::vector<std::vector<float>> variables) {
    const auto operation = of_answer(placed.layer->operation());
    const bool flattens = operation && std::holds_alternative<math::Flattening>(*operation);
    // Flattening a row changes nothing.
    if (!operation || (flattens && !is_image_)) {
      return;
    }
    if (std::holds_alternative<math::ChannelNormalization>(*operation) &&
        fold(std::get<math::ChannelNormalization>(*operation), variables)) {
      return;
    }
    const bool is_dense = std::holds_alternative<math::DenseProduct>(*operation);
    if (is_dense && is_image_) {
      // A dense layer of disttf takes an image as it is; other programs need a row.
      add(placed.name + "/flat", math::Flattening{}, {.channels = shape_.size()}, false);
    }
    const bool wants_image = std::holds_alternative<math::ConvolutionOfImage>(*operation) ||
                             std::holds_alternative<math::PoolingOfImage>(*operation);
    if (wants_image && !is_image_) {
      add(placed.name + "/image", Imaging{}, shape_, true);
    }
    add(placed.name, *operation, placed.layer->output(), is_image_ && !is_dense && !flattens,
        std::move(variables));
  }

  // Folds the normalization into the preceding weights. Returns false where no weights precede it.
  bool fold(const math::ChannelNormalization& normalization,
            const std::vector<std::vector<float>>& variables) {
    if (result_.steps.empty()) {
      return false;
    }
    // The variables are this object's copies, so the model itself stays as it is.
    AnswerStep& before = result_.steps.back();
    // Only weights directly before the normalization can absorb it.
    if (!std::holds_alternative<math::DenseProduct>(before.operation) &&
        !std::holds_alternative<math::ConvolutionOfImage>(before.operation)) {
      return false;
    }
    std::vector<float>& weights = before.variables[0];
    std::vector<float>& biases = before.variables[1];
    const std::size_t channels = biases.size();
    // In double, since the factors are rounded to float only once.
    for (std::size_t c = 0; c < channels; ++c) {
      const double gamma = variables[0][c];
      const double beta = variables[1][c];
      const double mean = variables[2][c];
      const double variance = variables[3][c];
      const double scale = gamma / std::sqrt(variance + double{normalization.epsilon});
      biases[c] = static_cast<float>((double{biases[c]} - mean) * scale + beta);
      // The unit is the last dimension of the weights of both layers.
      for (std::size_t i = c; i < weights.size(); i += channels) {
        weights[i] = static_cast<float>(double{weights[i]} * scale);
      }
    }
    return true;
  }

  void add_answer() {
    const ExampleFacts& facts = model_.config.examples;
    switch (math::loss_type(model_.config.model.loss).answer_function) {
      case math::AnswerFunction::kSoftmax:
        add("answer", Probabilities{}, shape_, false);
        break;
      case math::AnswerFunction::kSigmoid:
        add("answer", math::ElementFunction::kSigmoid, shape_, false);
        break;
      case math::AnswerFunction::kIdentity:
        add("answer", OutputScaling{.mean = facts.target_mean, .scale = facts.target_scale}, shape_,
            false);
        break;
    }
  }

  const TrainedModel& model_;
  AnswerSteps result_;
  math::Shape shape_;      // output of the last step
  bool is_image_ = false;  // whether that output has height and width
};

}  // namespace

AnswerSteps answer_steps_of(const TrainedModel& model) { return StepsOfModel(model).make(); }

}  // namespace disttf::roles
