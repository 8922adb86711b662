// sgd: w -= lr g
#pragma once

#include "math/optimizer_spec.h"

namespace disttf::math {

struct SgdRule {
  static constexpr OptimizerKind kKind = OptimizerKind::kSgd;
  static constexpr std::string_view kName = "sgd";
  static constexpr float kLearningRate = 0.5F;
  static constexpr std::size_t kStateCount = 0;

  [[gnu::always_inline]] SgdRule(const OptimizerSpec& /*spec*/, float rate) noexcept
      : rate_(rate) {}
  [[gnu::always_inline]] float next(float w, float g) const noexcept { return w - rate_ * g; }

 private:
  float rate_;
};

}  // namespace disttf::math
