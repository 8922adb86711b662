// flatten: an image becomes a list of its numbers in storage order: row by row, position by
// position, the channels of a position. Nothing is computed.
#pragma once

#include "math/layers/registry.h"

namespace disttf::math {

[[nodiscard]] const LayerType& flatten() noexcept;

}  // namespace disttf::math
