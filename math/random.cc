#include "math/random.h"

#include <cassert>

#include "math/kernels_table.h"
#include "math/philox_constants.h"

namespace disttf::math {
namespace {

constexpr std::uint32_t low(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value >> 32U);
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept {
#pragma GCC unroll 10  // saves a third of the time
  for (int round = 0; round < kPhiloxRounds; ++round) {
    // Philox-4x32-10 (Salmon and others, Parallel random numbers: as easy as 1, 2, 3, 2011): a
    // value is a function of key and counter, so any task can compute any draw alone.
    const std::uint64_t product0 = kPhiloxMultiplier0 * counter[0];
    const std::uint64_t product1 = kPhiloxMultiplier1 * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key[0] += kPhiloxKeyStep0;
    key[1] += kPhiloxKeyStep1;
  }
  return counter;
}

std::uint64_t random_bits(std::uint64_t seed, std::uint32_t purpose, std::uint64_t stream,
                          std::uint64_t index) noexcept {
  assert(purpose < kPurposeLimit);
  assert(stream < kStreamLimit);
  const auto block = philox({low(index), high(index), low(stream), high(stream) | (purpose << 16U)},
                            {low(seed), high(seed)});
  return (std::uint64_t{block[1]} << 32U) | block[0];
}

void random_bits(std::uint64_t seed, std::uint32_t purpose, std::uint64_t stream,
                 std::uint64_t first, std::span<std::uint64_t> bits) noexcept {
  assert(purpose < kPurposeLimit);
  assert(stream < kStreamLimit);
  // All instruction sets compute the same integers, so the fastest is used whatever the run chose.
  kernels(supported_isas().front())
      .random_bits(seed, stream | (std::uint64_t{purpose} << 48U), first, bits.data(), bits.size());
}

}  // namespace disttf::math
