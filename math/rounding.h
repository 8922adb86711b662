// The formats to which tensors are rounded for --wire_dtype: bfloat16, and blocks of small
// integers.
//
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

#include <cstddef>
#include <cstdint>
#include <span>

#include "math/kernels.h"

namespace disttf::math {

void to_bf16(std::span<const float> from, std::span<std::uint16_t> to, Isa isa);
// Exact.
void from_bf16(std::span<const std::uint16_t> from, std::span<float> to, Isa isa);
// to_bf16() followed by from_bf16(). `to` is `from` or does not overlap it.
void round_to_bf16(std::span<const float> from, std::span<float> to, Isa isa);

// Block floating point: 16 floats share one exponent, each keeps 8 or 4 bits. Tensors are rounded
// to it where --wire_dtype int8 or int4 sends them.
//
//   size         field
//   ceil(n/16)   exponent of each block: the exponent field of its largest magnitude as a float;
//                0: all numbers are 0; 255: all are NaN
//   ceil(n b/8)  b bits of each number, two's complement; with 4 bits the lower half of a byte
//                comes first
//
// A number is its bits times 2^(exponent - 127 - (b - 2)), so the largest of a block has one sign
// bit and no leading zeros. Rounds to nearest, ties to even, and never to -2^(b-1), which has no
// counterpart. Blocks whose numbers are all below 2^-111 become 0. A block with an infinity or a
// NaN becomes NaN as a whole, so that a diverged run cannot look healthy.
//
// Uses products with powers of two and one rounded addition: bit-identical on every instruction
// set. Rounding twice equals rounding once. A vector may be split between blocks: ranges of ps are,
// and each variable begins a block. Pure; callable from any thread.
inline constexpr std::size_t kFloatsPerBlock = 16;

// REQUIRES, here and below: bits is 8 or 4.
[[nodiscard]] constexpr std::size_t block_float_bytes(std::size_t count, unsigned bits) noexcept {
  return (count + kFloatsPerBlock - 1) / kFloatsPerBlock + (count * bits + 7) / 8;
}

// REQUIRES, here and below: isa is in supported_isas(); block_float_bytes() bytes.
void to_block_float(std::span<const float> from, unsigned bits, std::span<std::byte> to, Isa isa);
// Accepts any bytes: each decodes to a number or NaN.
void from_block_float(std::span<const std::byte> from, unsigned bits, std::span<float> to, Isa isa);
// Both in sequence. `to` is `from` or does not overlap it.
void round_to_block_float(std::span<const float> from, unsigned bits, std::span<float> to, Isa isa);

}  // namespace disttf::math
