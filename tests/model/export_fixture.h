// Trained models of a few parameters, for tests of what is made of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/export/answer_steps.h"
#include "model/trained_model.h"

namespace disttf::roles {

inline math::LayerSpec layer(const std::string& type,
                             std::map<std::string, math::LayerValue, std::less<>> fields = {},
                             const std::string& name = "") {
  return {.type = type, .name = name, .fields = std::move(fields)};
}

// Numbers between -1 and 1 that say nothing.
inline float next_number(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return static_cast<float>(state >> 8U) / static_cast<float>(1U << 23U) - 1.0F;
}

inline TrainedModel model_of(math::Shape input, std::vector<math::LayerSpec> layers,
                             std::size_t classes, math::LossKind loss = {}) {
  TrainedModel model;
  model.config.model.loss = loss;
  model.config.dataset = "Tests";
  model.config.model.input = input;
  model.config.model.classes = classes;
  model.config.model.layers = std::move(layers);
  model.step = 7;
  const math::ParameterLayout layout = math::layout_of(model.config.model);
  model.parameters = math::AlignedVector(layout.size());
  std::uint32_t state = 5;
  for (const math::Variable& variable : layout.variables()) {
    const auto sums = static_cast<float>(variable.size / variable.shape.back());
    for (float& each : model.parameters.span().subspan(variable.offset, variable.size)) {
      each = next_number(state) / std::sqrt(sums);
      if (variable.name.ends_with("_variance")) {
        each = each * each + 0.5F;
      }
    }
  }
  model.weights_sha256 = weights_hash(layout, model.parameters.span());
  return model;
}

// Every type of layer, in an image with several channels whose sizes differ.
inline TrainedModel model_of_all_layers() {
  return model_of({.height = 9, .width = 7, .channels = 2},
                  {layer("batch_norm"), layer("conv2d", {{"channels", 3.0}, {"kernel", 3.0}}),
                   layer("batch_norm"), layer("relu"), layer("max_pool", {{"size", 2.0}}),
                   layer("conv2d", {{"channels", 4.0}, {"kernel", 2.0}, {"padding", "valid"}}),
                   layer("tanh"), layer("average_pool", {{"size", 2.0}, {"stride", 1.0}}),
                   layer("flatten"), layer("batch_norm", {{"epsilon", 0.01}}), layer("sigmoid"),
                   layer("dropout", {{"rate", 0.5}}), layer("dense", {{"units", 6.0}}),
                   layer("dropout", {{"rate", 0.25}}), layer("batch_norm"), layer("relu"),
                   layer("dense", {{"units", 3.0}}, "sm")},
                  3);
}

inline TrainedModel model_of_strides() {
  return model_of(
      {.height = 8, .width = 5, .channels = 3},
      {layer("conv2d", {{"channels", 4.0}, {"kernel", 4.0}, {"stride", 2.0}}, "first"),
       layer("conv2d", {{"channels", 4.0}, {"kernel", 3.0}, {"stride", 3.0}}, "second"),
       layer("conv2d", {{"channels", 2.0}, {"kernel", 1.0}, {"padding", "valid"}}, "third")},
      4);
}

// Of a table, whose label is a number.
inline TrainedModel model_of_numbers() {
  TrainedModel model =
      model_of({.channels = 3},
               {layer("dense", {{"units", 5.0}}), layer("tanh"), layer("dense", {{"units", 1.0}})},
               1, math::LossKind::kMeanSquaredError);
  model.config.model.numbers = true;
  model.config.examples = {.classes = {},
                           .columns = {"age", "height", "sh\"oe"},
                           .label = "weight",
                           .means = {40, 170, 42},
                           .scales = {0.1F, 0.05F, 0.5F},
                           .target_mean = 70,
                           .target_scale = 0.08F};
  return model;
}

// Computes the steps of an answer one number at a time in double, to compare with the model's own
// answer.

// `example`: in the layout that the steps expect, an image with its channels last.
[[nodiscard]] std::vector<double> answer_by(const AnswerSteps& steps, std::vector<double> example);

}  // namespace disttf::roles
