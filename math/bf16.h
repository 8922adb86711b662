// bfloat16: the upper 16 bits of a float, so the same range with 8 bits of precision. What tensors
// are rounded to where --wire_dtype bf16 sends them.
//
// Rounding is to the nearest, ties to even. A NaN stays one (quiet, its sign and upper bits kept),
// infinities stay, what is nearer to 2^128 than to the largest bfloat16 becomes infinity, denormals
// are numbers as any. Integer arithmetic: the same bits on every instruction set, wherever a vector
// is cut. What has been rounded once is not changed by rounding it again.
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
// Both, one after the other. `to` is `from` or does not overlap it.
void round_to_bf16(std::span<const float> from, std::span<float> to, Isa isa);

}  // namespace disttf::math
