// For labels that are numbers: one output y and one target t per row.
//   loss  (y - t)^2
//   by y  2 (y - t)
// Squares are added in the order of the rows, in double.
#pragma once

#include "math/losses/registry.h"

namespace disttf::math {

[[nodiscard]] const LossType& mean_squared_error() noexcept;

}  // namespace disttf::math
