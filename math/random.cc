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

namespace {

// exp(-t) for 0 <= t <= 2, within 1e-14: (exp(-t/8))^8 by the first terms of the series. Uses only
// + and *, so that every machine draws the same initial values.
double exp_of_minus(double t) noexcept {
  const double x = -t / 8.0;
  double sum = 1.0;
  for (int k = 12; k >= 1; --k) {  // |x| <= 1/4: the first omitted term is below 3e-18
    sum = 1.0 + sum * x / k;
  }
  const double square = sum * sum;
  const double fourth = square * square;
  return fourth * fourth;
}

}  // namespace

// Rejection sampling: a uniform z in [-2, 2) is accepted with probability exp(-z^2/2), three times
// in five. Attempt k of element i draws with the index k * 2^40 + i: no variable has 2^40 elements.
double truncated_normal(std::uint64_t seed, std::uint64_t variable,
                        std::uint64_t element) noexcept {
  constexpr double kUnit = 1.0 / 4294967296.0;  // 2^-32
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t bits =
        random_bits(seed, static_cast<std::uint32_t>(Purpose::kInitialValues), variable,
                    (attempt << 40U) + element);
    const double z = 4.0 * kUnit * static_cast<double>(bits >> 32U) - 2.0;
    const double keep = kUnit * static_cast<double>(bits & 0xFFFFFFFFU);
    if (keep < exp_of_minus(z * z / 2.0)) {
      return z;
    }
  }
}

}  // namespace disttf::math
