// Each class is predicted independently, p_j = 1 / (1 + exp(-z_j)), as in PyTorch's
// BCEWithLogitsLoss and Keras' BinaryCrossentropy.
//   loss  -1/classes sum_j (t_j log p_j + (1 - t_j) log(1 - p_j)), natural logarithm
//   t     (1 - s) onehot(label) + s / 2, s the smoothing
//   by z  (p - t) / classes
// The kernel (math/kernels_table.h) adds classes in order, then rows in order.
#pragma once

#include "math/losses/registry.h"

namespace disttf::math {

[[nodiscard]] const LossType& sigmoid_cross_entropy() noexcept;

}  // namespace disttf::math
