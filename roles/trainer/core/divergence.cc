#include "roles/trainer/core/divergence.h"

#include <cmath>

namespace disttf::roles {
namespace {

// Times the loss of guessing. A run that ends on its first steps, at ten times the default
// rate, was seen at 6; runs that had diverged at 4 (called kNothing) to 100 000. With 10 classes
// this is 23: the right class is given a probability of 1e-10.
constexpr double kFarWorse = 10;

// The same: an answer that is the same for every image, and knows how often each class comes, costs
// 0.9993 of it on MNIST; a run that has begun to learn was soon below 0.93.
constexpr double kHardlyBetter = 0.95;

// A loss alone does not tell: a softmax model whose rate is a million times too large is as sure as
// that of everything, and right for 9 images of 10. Runs that had diverged were right for at most 2
// of 10. Of two classes a guess is right for half.
double mostly(std::size_t classes) noexcept { return classes == 2 ? 0.6 : 0.5; }

// The root mean square of weights. Runs on MNIST that learned ended at 0.05 to 0.6 (rates from 0.01
// to 0.1); adam at rate 1 ended at 5, at 10 at 47, at 50 at 235; sgd at 20 at 55, at 1000 at 1e7.
constexpr double kHugeWeights = 10;
// Where a run has hardly learned, weights of this size are no beginning: at rate 1 adam ended at a
// loss of 2.1 to 2.3.
constexpr double kLargeWeights = 1;

// Times the loss of guessing. Runs that had diverged were seen at 0.92 and above.
constexpr double kNotBetter = 0.8;

}  // namespace

Learning judge(const math::Evaluation& validation, double guessing, double weights) noexcept {
  if (!std::isfinite(validation.loss) || !std::isfinite(weights)) {
    return Learning::kDiverged;
  }
  if (validation.accuracy() >= mostly(validation.classes)) {
    return Learning::kLearned;
  }
  const bool is_huge = validation.classes != 0 && weights > kHugeWeights;
  if (validation.loss > kFarWorse * guessing ||
      (is_huge && validation.loss > kNotBetter * guessing)) {
    return Learning::kDiverged;
  }
  const bool is_large = validation.classes != 0 && weights > kLargeWeights;
  const double hardly_better = is_large ? kNotBetter : kHardlyBetter;
  return validation.loss < hardly_better * guessing ? Learning::kLearned : Learning::kNothing;
}

double root_mean_square(const math::ParameterLayout& layout, std::span<const float> parameters) {
  double sum = 0;
  std::size_t count = 0;
  for (const math::Variable& variable : layout.variables()) {
    if (variable.momentum) continue;
    for (const float value : parameters.subspan(variable.offset, variable.size)) {
      sum += static_cast<double>(value) * static_cast<double>(value);
    }
    count += variable.size;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

}  // namespace disttf::roles
