// The norm of a gradient, clipping by it, and whether all its numbers are finite.
//
// Clipping by norm: scales a gradient whose norm exceeds a bound down to the bound.
//
// The norm is the root of the sum of all squares, each exact in double. The sum has sixteen chains;
// chain j adds the elements i with i % 16 = j in order, and then the chains are added in order. So
// it is bit-identical on every instruction set. The sums of several ranges are added in order.
//
// Pure functions; callable from any thread. They allocate nothing.
#pragma once

#include <span>

#include "math/kernels.h"
#include "math/parameter_layout.h"

namespace disttf::math {

[[nodiscard]] double norm_of(std::span<const float> values, std::span<const Range> ranges,
                             Isa isa) noexcept;

// gradient *= min(1, most / norm) within these ranges, whose norm is used; the rest is no gradient.
// A gradient whose norm is not a number is left unchanged. REQUIRES: most > 0; isa is in
// supported_isas(); the ranges are within the gradient and disjoint.
void clip_by_norm(std::span<float> gradient, std::span<const Range> ranges, float most,
                  Isa isa) noexcept;

// Returns true if no value is an infinity or NaN. One pass with integers, in half the time of
// norm_of(). REQUIRES: isa is in supported_isas().
[[nodiscard]] bool all_finite(std::span<const float> values, Isa isa) noexcept;

}  // namespace disttf::math
