#include "math/losses/sigmoid_cross_entropy.h"

#include <cmath>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

// What the probability 1/classes for each of them costs.
double cost_of_guessing(std::size_t classes) noexcept {
  const double one = 1.0 / static_cast<double>(classes);
  return -(one * std::log(one) + (1 - one) * std::log(1 - one));
}

constexpr LossType kSigmoidLoss{.name = "sigmoid_cross_entropy",
                                .differentiate =
                                    [](const LossPass& pass, float* outputs) noexcept {
                                      return pass.kernels->sigmoid_cross_entropy(
                                          outputs, pass.labels, pass.rows, pass.outputs, pass.scale,
                                          pass.smoothing);
                                    },
                                .of_guessing = &cost_of_guessing};

}  // namespace

const LossType& sigmoid_cross_entropy() noexcept { return kSigmoidLoss; }

}  // namespace disttf::math
