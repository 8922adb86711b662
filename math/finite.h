// Whether all of many values are numbers.
#pragma once

#include <span>

#include "math/kernels.h"

namespace disttf::math {

// None of them is an infinity or not a number. One pass, of integers: half of what
// norm_of() (math/clip.h) takes. A pure function; callable from any thread.
// REQUIRES: isa is in supported_isas().
[[nodiscard]] bool all_finite(std::span<const float> values, Isa isa) noexcept;

}  // namespace disttf::math
