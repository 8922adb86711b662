// The registry of the optimizers. To add one, write a file like optimizer_adam.h, a row of the list
// below and an enumerator in optimizer_spec.h; names, state, checkpoints, the default learning
// rate, the kernels of every instruction set and --optimizer follow.
//
// A rule is a class of which each update makes one object for all its elements:
//
//   struct AdamRule {
//     static constexpr OptimizerKind kKind;         // its place in the list
//     static constexpr std::string_view kName;      // the value of --optimizer
//     static constexpr float kLearningRate;         // where the user gives none
//     static constexpr StateStart kState[];         // its tensors beside the parameters; or none:
//     static constexpr std::size_t kStateCount;     // how many, kMaxStateTensors at most
//     // Optional: what the learning rate of step `step` becomes; on the host, once an update.
//     static float rate_at(const OptimizerSpec& spec, float rate, std::uint64_t step) noexcept;
//     // Optional: OptimizerSpec::weight_decay is not added to the gradient (g + weight_decay w),
//     // but taken off the parameter: w -= lr weight_decay w. Either is done around next().
//     static constexpr bool kDecouplesDecay = true;
//     // Of one update, with the rate of the above:
//     AdamRule(const OptimizerSpec& spec, float rate) noexcept;
//     // The new value of a parameter that is w, where the mean gradient is g; the state's elements
//     // follow, and are changed.
//     float next(float w, float g, float& m, float& v) const noexcept;
//   };
//
// The constructor and next() are compiled once per instruction set. So both are
// [[gnu::always_inline]], because a copy shared by the linker would contain illegal instructions on
// other CPUs, and use only + - * / and __builtin_sqrtf (math/kernels_impl.inc explains why).
#pragma once

#include <cstddef>

#include "math/optimizer_adagrad.h"
#include "math/optimizer_adam.h"
#include "math/optimizer_adamw.h"
#include "math/optimizer_momentum.h"
#include "math/optimizer_sgd.h"

namespace disttf::math {

template <typename... Rules>
struct RuleList {
  static constexpr std::size_t kCount = sizeof...(Rules);

  // Whether each rule is at the position of its kind.
  [[nodiscard]] static constexpr bool is_in_order() noexcept {
    std::size_t place = 0;
    return ((static_cast<std::size_t>(Rules::kKind) == place++) && ...);
  }
};

template <typename Rule>
[[nodiscard]] consteval bool decouples_decay() noexcept {
  if constexpr (requires { Rule::kDecouplesDecay; }) {
    return Rule::kDecouplesDecay;
  } else {
    return false;
  }
}

using OptimizerRules = RuleList<SgdRule, MomentumRule, AdagradRule, AdamRule, AdamwRule>;

static_assert(OptimizerRules::is_in_order(), "in the order of OptimizerKind");

}  // namespace disttf::math
