// flatten: an image becomes the numbers that it consists of, in the order in which they lie: row by
// row, in a row position by position, of a position its channels. Nothing is computed.
#pragma once

#include "math/layers/layer_type.h"

namespace disttf::math {

[[nodiscard]] const LayerType& flatten() noexcept;

}  // namespace disttf::math
