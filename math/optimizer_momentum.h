// momentum: m = momentum m + g;  w -= lr m
#pragma once

#include "math/optimizer_spec.h"

namespace disttf::math {

struct MomentumRule {
  static constexpr OptimizerKind kKind = OptimizerKind::kMomentum;
  static constexpr std::string_view kName = "momentum";
  static constexpr float kLearningRate = 0.1F;
  static constexpr StateStart kState[] = {{.name = "momentum"}};
  static constexpr std::size_t kStateCount = 1;

  [[gnu::always_inline]] MomentumRule(const OptimizerSpec& spec, float rate) noexcept
      : rate_(rate), momentum_(spec.momentum) {}
  [[gnu::always_inline]] float next(float w, float g, float& m) const noexcept {
    m = momentum_ * m + g;
    return w - rate_ * m;
  }

 private:
  float rate_;
  float momentum_;
};

}  // namespace disttf::math
