#include "math/losses/sigmoid_cross_entropy.h"

#include <cmath>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

// The loss of assigning probability 1/classes to each class.
double cost_of_guessing(std::size_t classes) noexcept {
  const double one = 1.0 / static_cast<double>(classes);
  return -(one * std::log(one) + (1 - one) * std::log(1 - one));
}

// Each 1 / (1 + exp(-z)).
void probabilities_each(std::span<float> row) noexcept {
  for (float& each : row) {
    // For a very negative logit exp() overflows to infinity, and the quotient is 0, its limit.
    each = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(each))));
  }
}

constexpr LossType kSigmoidLoss{.name = "sigmoid_cross_entropy",
                                .differentiate =
                                    [](const LossPass& pass, float* outputs) noexcept {
                                      return pass.kernels->sigmoid_cross_entropy(
                                          outputs, pass.labels, pass.rows, pass.outputs, pass.scale,
                                          pass.smoothing);
                                    },
                                .of_guessing = &cost_of_guessing,
                                .answer = &probabilities_each,
                                .answer_function = AnswerFunction::kSigmoid};

}  // namespace

const LossType& sigmoid_cross_entropy() noexcept { return kSigmoidLoss; }

}  // namespace disttf::math
