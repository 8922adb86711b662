// Layers that put each number through a function, in its place.
//
//   relu:  y = max(x, 0)    dx = dy where y > 0, else 0
#pragma once

#include "math/layers/layer_type.h"

namespace disttf::math {

[[nodiscard]] const LayerType& relu() noexcept;

}  // namespace disttf::math
