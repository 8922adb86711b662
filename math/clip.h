// Clipping by the norm: a gradient that is longer than a bound is scaled to that length.
//
// The norm is the root of the sum of all squares, each exact in double, added in sixteen chains,
// chain j those of the elements i with i % 16 = j in order, and then the chains in order: the same
// bits on every instruction set. Of several ranges these sums are added in their order.
//
// Pure functions; callable from any thread. Nothing is allocated.
#pragma once

#include <span>

#include "math/kernels.h"
#include "math/parameter_layout.h"

namespace disttf::math {

[[nodiscard]] double norm_of(std::span<const float> values, std::span<const Range> ranges,
                             Isa isa) noexcept;

// gradient *= min(1, most / norm), in these ranges, whose norm it is; the rest is no gradient. One
// whose norm is not a number stays as it is.
// REQUIRES: most > 0; isa is in supported_isas(); the ranges are within the gradient, disjoint.
void clip_by_norm(std::span<float> gradient, std::span<const Range> ranges, float most,
                  Isa isa) noexcept;

}  // namespace disttf::math
