#include "math/losses/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

// Each exp(z - the largest), divided by their sum.
void probabilities(std::span<float> row) noexcept {
  // Subtracting the largest logit changes no probability and keeps exp() from overflowing.
  const double most = static_cast<double>(*std::ranges::max_element(row));
  double sum = 0;
  for (const float logit : row) {
    sum += std::exp(static_cast<double>(logit) - most);
  }
  for (float& each : row) {
    each = static_cast<float>(std::exp(static_cast<double>(each) - most) / sum);
  }
}

constexpr LossType kSoftmaxLoss{
    .name = "softmax_cross_entropy",
    .differentiate =
        [](const LossPass& pass, float* outputs) noexcept {
          return pass.kernels->softmax_cross_entropy(outputs, pass.labels, pass.rows, pass.outputs,
                                                     pass.scale, pass.smoothing);
        },
    // Every class gets the probability 1 / classes.
    .of_guessing =
        [](std::size_t classes) noexcept { return std::log(static_cast<double>(classes)); },
    .answer = &probabilities,
    .answer_function = AnswerFunction::kSoftmax};

}  // namespace

const LossType& softmax_cross_entropy() noexcept { return kSoftmaxLoss; }

}  // namespace disttf::math
