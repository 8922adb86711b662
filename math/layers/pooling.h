// max_pool, average_pool: for each window of size x size positions, `stride` apart, and for each
// channel separately, the largest number or the mean. Windows lie within the image: positions at
// its lower and right edge that do not fill a window are ignored.
//
//   max_pool:      the first of equals, row by row; its delta goes back there. A NaN is the
//   largest.
//                  Kept for the backward pass: the index of each one in its window.
//   average_pool:  the sum, row by row, times 1/size^2; each position gets that share of the delta.
//
// Where windows overlap, a position's deltas are added window by window, row by row.
#pragma once

#include "math/layers/registry.h"

namespace disttf::math {

[[nodiscard]] const LayerType& max_pooling() noexcept;
[[nodiscard]] const LayerType& average_pooling() noexcept;

}  // namespace disttf::math
