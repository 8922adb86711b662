// Of labels that are numbers: one output y for a row, and one target t.
//   loss  (y - t)^2
//   by y  2 (y - t)
// Squares are added up in the order of the rows, in double.
#pragma once

#include "math/losses/loss.h"

namespace disttf::math {

[[nodiscard]] const LossType& mean_squared_error() noexcept;

}  // namespace disttf::math
