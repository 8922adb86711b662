#include "math/top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "math/rounding.h"

namespace disttf::math {
namespace {

// Floats without their signs have the order of their bits.
std::uint32_t magnitude_of(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
}

// Magnitudes have 31 bits, which are processed from the top in digits of this size. 2^11 counters
// stay in the first-level cache; 2^16 do not, and with 2^8 a fourth pass is needed.
struct Digit {
  unsigned shift;
  unsigned bits;
};
constexpr std::array kDigits = {Digit{.shift = 20, .bits = 11}, Digit{.shift = 10, .bits = 10},
                                Digit{.shift = 0, .bits = 10}};

}  // namespace

TopK::TopK(std::size_t size, std::size_t count, bool bf16)
    : count_(count), bf16_(bf16), residual_(size) {
  assert(count >= 1);
}

// Finds the count-th largest magnitude of residual_, digit by digit.
TopK::Threshold TopK::threshold() const {
  const std::span<const float> values = residual_.span();
  std::uint32_t prefix = 0;  // the digits found so far
  std::uint32_t known = 0;   // the mask of these digits
  std::size_t wanted = count_;
  for (const Digit& digit : kDigits) {
    // Each pass is a histogram of one digit among the values that agree with the digits found so
    // far (radix selection): three passes over memory instead of a sort.
    std::array<std::uint32_t, 1U << 11U> counts{};
    const std::uint32_t mask = (1U << digit.bits) - 1;
    for (const float value : values) {
      const std::uint32_t magnitude = magnitude_of(value);
      if ((magnitude & known) == prefix) {
        ++counts[(magnitude >> digit.shift) & mask];
      }
    }
    std::uint32_t found = mask;
    // Goes down from the largest digit. If k exceeds the number of values, the search ends at 0,
    // and everything but zeros is sent.
    for (; found > 0 && counts[found] < wanted; --found) {
      wanted -= counts[found];
    }
    prefix |= found << digit.shift;
    known |= mask << digit.shift;
  }
  return {.magnitude = prefix, .ties = wanted};
}

void TopK::select(std::span<float> gradient) {
  assert(gradient.size() == residual_.size());
  const std::span<float> sum = residual_.span();
  for (std::size_t i = 0; i < sum.size(); ++i) {
    // `residual_` holds the sum from here to the last loop, which leaves what was not sent.
    sum[i] += gradient[i];
  }
  auto [limit, ties] = threshold();
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const std::uint32_t magnitude = magnitude_of(sum[i]);
    bool is_sent = magnitude > limit;
    // A tie has a fixed winner, the lower index, so the selection does not depend on the
    // instruction set.
    if (magnitude == limit && ties > 0 && magnitude != 0) {
      is_sent = true;
      --ties;
    }
    gradient[i] = is_sent ? sum[i] : 0.0F;
  }
  if (bf16_) {
    // Rounding comes before the subtraction, so that its error stays in the residual.
    round_to_bf16(gradient, gradient, Isa::kGeneric);
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] -= gradient[i];
  }
}

void TopK::take_back(std::size_t begin, std::span<const float> sent) {
  const std::span<float> kept = residual_.span().subspan(begin, sent.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    kept[i] += sent[i];
  }
}

void TopK::reset() { std::ranges::fill(residual_.span(), 0.0F); }

}  // namespace disttf::math
