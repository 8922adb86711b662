// dropout: in training each number is set to 0 with probability `rate`, and the others are divided
// by 1 - rate, so that their mean stays (N. Srivastava et al., "Dropout", JMLR 2014, in the form
// that changes nothing when the model is evaluated).
//
// Which ones is drawn from (seed, step, place of the example among those of the step, layer,
// element), so it does not depend on who computes it. 16 bits decide one number: the rate is
// rounded to 1/65536. Kept for the way back: what each number was multiplied by.
#pragma once

#include "math/layers/layer_type.h"

namespace disttf::math {

[[nodiscard]] const LayerType& dropout() noexcept;

}  // namespace disttf::math
