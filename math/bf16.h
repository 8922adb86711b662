// bfloat16: the upper 16 bits of a float, which has the same range and 8 bits of precision. Tensors
// are rounded to it where --wire_dtype bf16 sends them.
//
// Rounds to nearest, ties to even. A NaN stays a NaN (quiet, with its sign and upper bits);
// infinities stay; values nearer to 2^128 than to the largest bfloat16 become infinity; denormals
// are treated like other numbers. Uses integer arithmetic: bit-identical on every instruction set,
// wherever a vector is split. Rounding twice equals rounding once.
//
// Pure; callable from any thread. REQUIRES: spans of equal size; isa is in supported_isas().
#pragma once

#include <cstdint>
#include <span>

#include "math/kernels.h"

namespace disttf::math {

void to_bf16(std::span<const float> from, std::span<std::uint16_t> to, Isa isa);
// Exact.
void from_bf16(std::span<const std::uint16_t> from, std::span<float> to, Isa isa);
// to_bf16() followed by from_bf16(). `to` is `from` or does not overlap it.
void round_to_bf16(std::span<const float> from, std::span<float> to, Isa isa);

}  // namespace disttf::math
