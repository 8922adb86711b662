#include "tests/math/reference_model.h"

#include <algorithm>
#include <cmath>

namespace disttf::math {

std::vector<std::vector<double>> ReferenceModel::forward(std::span<const double> parameters,
                                                         const ImageSet& set,
                                                         std::uint32_t row) const {
  const auto variables = layout_.variables();
  const std::size_t inputs = variables[0].shape[0];
  std::vector<double> pixels(inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    pixels[i] = set.images[row * inputs + i] / 255.0;
  }
  std::vector<std::vector<double>> values = {pixels};
  for (std::size_t v = 0; v < variables.size(); v += 2) {
    const Variable& weights = variables[v];
    const Variable& bias = variables[v + 1];
    std::vector<double> output(bias.size);
    for (std::size_t j = 0; j < bias.size; ++j) {
      output[j] = parameters[bias.offset + j];
      for (std::size_t i = 0; i < weights.shape[0]; ++i) {
        output[j] += values.back()[i] * parameters[weights.offset + i * bias.size + j];
      }
      if (v + 2 < variables.size()) {
        output[j] = std::max(output[j], 0.0);
      }
    }
    values.push_back(output);
  }
  return values;
}

double ReferenceModel::loss(std::span<const double> parameters, const ImageSet& set,
                            std::span<const std::uint32_t> rows) const {
  double total = 0;
  for (const std::uint32_t row : rows) {
    const std::vector<double> logits = forward(parameters, set, row).back();
    const double largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const double logit : logits) {
      sum += std::exp(logit - largest);
    }
    total += largest + std::log(sum) - logits[set.labels[row]];
  }
  return total / static_cast<double>(rows.size());
}

std::vector<double> ReferenceModel::gradient(std::span<const double> parameters,
                                             const ImageSet& set,
                                             std::span<const std::uint32_t> rows) const {
  const auto variables = layout_.variables();
  std::vector<double> gradient(parameters.size());
  for (const std::uint32_t row : rows) {
    const std::vector<std::vector<double>> values = forward(parameters, set, row);
    std::vector<double> delta = values.back();  // the loss by the layer's output
    const double largest = *std::ranges::max_element(delta);
    double sum = 0;
    for (double& value : delta) {
      value = std::exp(value - largest);
      sum += value;
    }
    for (double& value : delta) {
      value /= sum;
    }
    delta[set.labels[row]] -= 1;
    for (std::size_t layer = variables.size() / 2; layer-- > 0;) {
      const Variable& weights = variables[2 * layer];
      const Variable& bias = variables[2 * layer + 1];
      const std::vector<double>& input = values[layer];
      std::vector<double> below(input.size());
      for (std::size_t j = 0; j < bias.size; ++j) {
        gradient[bias.offset + j] += delta[j] / static_cast<double>(rows.size());
        for (std::size_t i = 0; i < input.size(); ++i) {
          const std::size_t weight = weights.offset + i * bias.size + j;
          gradient[weight] += input[i] * delta[j] / static_cast<double>(rows.size());
          below[i] += input[i] > 0 ? parameters[weight] * delta[j] : 0;
        }
      }
      delta = below;
    }
  }
  return gradient;
}

std::vector<double> ReferenceModel::differences(std::span<const double> parameters,
                                                const ImageSet& set,
                                                std::span<const std::uint32_t> rows) const {
  constexpr double kStep = 1e-5;
  std::vector<double> moved(parameters.begin(), parameters.end());
  std::vector<double> result(parameters.size());
  for (const Variable& variable : layout_.variables()) {
    for (std::size_t i = variable.offset; i < variable.offset + variable.size; ++i) {
      moved[i] = parameters[i] + kStep;
      const double above = loss(moved, set, rows);
      moved[i] = parameters[i] - kStep;
      const double below = loss(moved, set, rows);
      moved[i] = parameters[i];
      result[i] = (above - below) / (2 * kStep);
    }
  }
  return result;
}

}  // namespace disttf::math
