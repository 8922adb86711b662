#include "roles/trainer/core/divergence.h"

#include <cmath>

namespace disttf::roles {
namespace {

// A multiple of the loss of guessing. A run that ended on its first steps, at ten times the default
// rate, was seen at 6; diverged runs at 4 (classified kNothing) to 100 000. With 10 classes this is
// a loss of 23: the right class has a probability of 1e-10.
constexpr double kFarWorse = 10;

// A multiple of the loss of guessing. A constant answer that matches the class frequencies reaches
// 0.9993 on MNIST; a run that had begun to learn was soon below 0.93.
constexpr double kHardlyBetter = 0.95;

// The accuracy above which a high loss is no divergence: a softmax model trained at a million times
// the right rate is equally sure of everything, yet right for 9 images of 10. Diverged runs were
// right for at most 2 of 10. With two classes a guess is right for half.
double mostly(std::size_t classes) noexcept { return classes == 2 ? 0.6 : 0.5; }

// A root mean square of weights. Runs on MNIST that learned ended at 0.05 to 0.6 (rates from 0.01
// to 0.1); adam ended at 5 with rate 1, at 47 with 10, and at 235 with 50; sgd at 55 with rate 20,
// and at 1e7 with 1000.
constexpr double kHugeWeights = 10;
// Above this, a run that has hardly learned is not just at its beginning: adam with rate 1 ended at
// a loss of 2.1 to 2.3.
constexpr double kLargeWeights = 1;

// A multiple of the loss of guessing. Diverged runs were seen at 0.92 and above.
constexpr double kNotBetter = 0.8;

}  // namespace

Learning judge(const math::Evaluation& validation, double guessing, double weights) noexcept {
  // This comes first: every comparison with a NaN below is false.
  if (!std::isfinite(validation.loss) || !std::isfinite(weights)) {
    return Learning::kDiverged;
  }
  if (validation.accuracy() >= mostly(validation.classes)) {
    return Learning::kLearned;
  }
  // classes is 0: the labels are numbers of any scale, so the size of the weights says nothing.
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
    // A running statistic is not a weight.
    if (variable.momentum) continue;
    for (const float value : parameters.subspan(variable.offset, variable.size)) {
      // In double: a sum of millions of squares in float would lose digits.
      sum += static_cast<double>(value) * static_cast<double>(value);
    }
    count += variable.size;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

}  // namespace disttf::roles
