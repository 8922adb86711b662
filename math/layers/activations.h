// Layers that apply a function to each number, in place. The backward pass needs only the output,
// so nothing else is kept.
//
//   relu:     y = max(x, 0)          dx = dy where y > 0, else 0
//   tanh:     y = tanh(x)            dx = dy (1 - y^2)
//   sigmoid:  y = 1 / (1 + e^-x)     dx = dy y (1 - y)
//
// All three are bit-identical on every instruction set: the kernels have their own exp.
#pragma once

#include "math/layers/registry.h"

namespace disttf::math {

[[nodiscard]] const LayerType& relu() noexcept;
[[nodiscard]] const LayerType& tanh() noexcept;
[[nodiscard]] const LayerType& sigmoid() noexcept;

}  // namespace disttf::math
