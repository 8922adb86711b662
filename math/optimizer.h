// Optimizers: element-wise updates of a range of the parameter vector, so how the vector is cut
// over ps cannot change the result. State lives beside the parameters, on the ps.
//
// g is the mean gradient: gradient_sum * scale.
//   sgd:      w -= lr g
//   momentum: m = momentum m + g;                 w -= lr m            (TensorFlow's MomentumOptimizer)
//   adagrad:  a += g^2;                           w -= lr g / sqrt(a)  (a starts at 0.1, as TensorFlow's)
//   adam:     m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
//             w -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + epsilon)    (TensorFlow's AdamOptimizer)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "math/aligned.h"
#include "math/kernels.h"

namespace disttf::math {

enum class OptimizerKind : std::uint8_t { kSgd, kMomentum, kAdagrad, kAdam };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdam;
  float learning_rate = 0.001F;
  float momentum = 0.9F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
};

// One tensor of optimizer state, for checkpoints: "m", "v", "momentum", "accumulator".
struct StateTensor {
  std::string_view name;
  std::span<float> values;  // as many as the range has parameters
};

// The optimizer of one range. Not thread-safe: the ps's thread owns it.
class Optimizer {
 public:
  // `size`: floats in the range; may be 0.
  Optimizer(OptimizerSpec spec, std::size_t size, Isa isa);

  // One update. `step` counts applied updates from 1 (adam's t).
  // REQUIRES: parameters and gradient_sum have `size` floats.
  void apply(std::span<float> parameters, std::span<const float> gradient_sum, float scale,
             std::uint64_t step);

  [[nodiscard]] std::vector<StateTensor> state();

 private:
  OptimizerSpec spec_;
  const Kernels* kernels_;
  std::size_t size_;
  AlignedVector first_;   // momentum's or adam's m, adagrad's a; empty for sgd
  AlignedVector second_;  // adam's v
};

// sum[i] += addend[i]. REQUIRES: equal sizes.
void accumulate(std::span<float> sum, std::span<const float> addend, Isa isa);

}  // namespace disttf::math
