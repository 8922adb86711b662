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
// that of everything, and right for 9 images of 10. What has diverged was never right for 2 of 10.
constexpr double kMostly = 0.5;

}  // namespace

Learning judge(const math::Evaluation& validation, double guessing) noexcept {
  if (!std::isfinite(validation.loss)) {
    return Learning::kDiverged;
  }
  if (validation.accuracy() >= kMostly || validation.loss < kHardlyBetter * guessing) {
    return Learning::kLearned;
  }
  return validation.loss > kFarWorse * guessing ? Learning::kDiverged : Learning::kNothing;
}

}  // namespace disttf::roles
