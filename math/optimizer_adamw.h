// adamw, Loshchilov and Hutter, "Decoupled weight decay regularization":
//       m, v as adam;  w -= lr (sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + epsilon) + weight_decay w)
// Only the weight decays: adam's division would cancel the decay where gradients are large. lr is
// the rate of the step, so a schedule affects both terms.
#pragma once

#include "math/optimizer_adam.h"

namespace disttf::math {

struct AdamwRule : AdamRule {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdamw;
  static constexpr std::string_view kName = "adamw";
  static constexpr bool kDecouplesDecay = true;

  // Written out: a compiler-generated one could be shared among the instruction sets.
  [[gnu::always_inline]] AdamwRule(const OptimizerSpec& spec, float rate) noexcept
      : AdamRule(spec, rate) {}
};

}  // namespace disttf::math
