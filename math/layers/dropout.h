// dropout: in training, sets each number to 0 with probability `rate` and divides the others by 1 -
// rate, so that their mean is unchanged (inverted dropout; N. Srivastava et al., "Dropout", JMLR
// 2014). Does nothing in evaluation.
//
// The numbers are drawn from (seed, step, index of the example in the step, layer, element), so the
// draw does not depend on which task computes it. 16 bits decide one number: the rate is rounded to
// 1/65536. Kept for the backward pass: the factor of each number.
#pragma once

#include "math/layers/registry.h"

namespace disttf::math {

[[nodiscard]] const LayerType& dropout() noexcept;

}  // namespace disttf::math
