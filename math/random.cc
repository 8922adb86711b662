#include "math/random.h"

#include <cassert>

namespace disttf::math {
namespace {

// The published constants: two odd multipliers, and the golden ratio and sqrt(3) - 1 as 32-bit
// fractions, by which the key moves between rounds.
constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kKeyStep0 = 0x9E3779B9;
constexpr std::uint32_t kKeyStep1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr std::uint32_t low(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value >> 32U);
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept {
  // (A permutation of 55 000 rows, which an epoch begins with, took 0.9 ms as a loop, 0.6 so.)
#pragma GCC unroll 10
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key[0] += kKeyStep0;
    key[1] += kKeyStep1;
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

}  // namespace disttf::math
