// adagrad: a += g^2;  w -= lr g / sqrt(a)
#pragma once

#include "math/optimizer_spec.h"

namespace disttf::math {

struct AdagradRule {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdagrad;
  static constexpr std::string_view kName = "adagrad";
  static constexpr float kLearningRate = 0.1F;
  // TensorFlow's initial_accumulator_value: the first step divides by its root instead of zero.
  static constexpr StateStart kState[] = {{.name = "accumulator", .value = 0.1F}};
  static constexpr std::size_t kStateCount = 1;

  [[gnu::always_inline]] AdagradRule(const OptimizerSpec& /*spec*/, float rate) noexcept
      : rate_(rate) {}
  [[gnu::always_inline]] float next(float w, float g, float& a) const noexcept {
    a += g * g;
    return w - rate_ * g / __builtin_sqrtf(a);
  }

 private:
  float rate_;
};

}  // namespace disttf::math
