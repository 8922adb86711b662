// Checks whether all of many values are finite.
#pragma once

#include <span>

#include "math/kernels.h"

namespace disttf::math {

// Returns true if no value is an infinity or NaN. One pass with integers, in half the time of
// norm_of() (math/clip.h). A pure function; callable from any thread.
// REQUIRES: isa is in supported_isas().
[[nodiscard]] bool all_finite(std::span<const float> values, Isa isa) noexcept;

}  // namespace disttf::math
