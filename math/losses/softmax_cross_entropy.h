// The outputs z of a row are logits: p_j = exp(z_j) / sum_k exp(z_k).
//   loss  -sum_j t_j log p_j, natural logarithm
//   t     (1 - s) onehot(label) + s / classes, s the smoothing
//   by z  p - t
// The kernel (math/kernels_table.h) defines the order of its sums.
#pragma once

#include "math/losses/registry.h"

namespace disttf::math {

[[nodiscard]] const LossType& softmax_cross_entropy() noexcept;

}  // namespace disttf::math
