// Block floating point: 16 floats share one exponent, each keeps 8 or 4 bits. What tensors are
// rounded to where --wire_dtype int8 or int4 sends them.
//
//   size         field
//   ceil(n/16)   exponent of each block: the exponent field of its largest magnitude as a float;
//                0: all its numbers are 0; 255: none of them is finite
//   ceil(n b/8)  b bits of each number, two's complement; with 4 bits the lower half of a byte
//                comes first
//
// A number is its bits times 2^(exponent - 127 - (b - 2)), so the largest of a block has one sign
// bit and no leading zeros. Rounding is to the nearest, ties to even, and never to -2^(b-1), which
// has no counterpart. Blocks whose numbers are all below 2^-111 are 0; one that holds an infinity
// or a NaN becomes NaN, all of it: a run that diverged must not look healthy.
//
// Products with powers of two and one rounded addition: the same bits on every instruction set.
// What has been rounded once is not changed by rounding it again, and a vector may be cut between
// blocks: ranges of ps are, and a variable begins with one. Pure; callable from any thread.
#pragma once

#include <cstddef>
#include <span>

#include "math/kernels.h"

namespace disttf::math {

inline constexpr std::size_t kFloatsPerBlock = 16;

// REQUIRES, here and below: bits is 8 or 4.
[[nodiscard]] constexpr std::size_t block_float_bytes(std::size_t count, unsigned bits) noexcept {
  return (count + kFloatsPerBlock - 1) / kFloatsPerBlock + (count * bits + 7) / 8;
}

// REQUIRES, here and below: isa is in supported_isas(). As many bytes as block_float_bytes() says.
void to_block_float(std::span<const float> from, unsigned bits, std::span<std::byte> to, Isa isa);
// Takes any bytes: each is a number or NaN.
void from_block_float(std::span<const std::byte> from, unsigned bits, std::span<float> to, Isa isa);
// Both, one after the other. `to` is `from` or does not overlap it.
void round_to_block_float(std::span<const float> from, unsigned bits, std::span<float> to, Isa isa);

}  // namespace disttf::math
