// Which optimizer, its numbers, and the rule that each of them is.
//
// Which optimizer, and its numbers: plain values, separate from optimizer.h because the optimizers'
// own files, such as optimizer_adam.h, use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace disttf::math {

// One for each row of optimizer_rules.h, in that order.
enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kAdagrad, kAdam, kAdamw };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdam;
  float learning_rate = 0.001F;  // lr; finite, > 0
  float momentum = 0.9F;         // of momentum; 0 <= momentum < 1
  float beta1 = 0.9F;            // b1 of adam and adamw; 0 <= beta1 < 1
  float beta2 = 0.999F;          // b2 of adam and adamw; 0 <= beta2 < 1
  float epsilon = 1e-8F;         // of adam and adamw; finite, > 0
  float weight_decay = 0.0F;     // for the parameters that decay; 0 <= weight_decay < 1
  float average_decay = 0.0F;    // d of the averaged parameters; 0: none; 0 <= average_decay < 1
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

// Shared by the optimizers' files; optimizer_rules.h describes their content.
inline constexpr std::size_t kMaxStateTensors = 2;

// A state tensor: its name in checkpoints, and its initial value. The same name in two optimizers
// implies the same value.
struct StateStart {
  std::string_view name;
  float value = 0;
};

}  // namespace disttf::math
