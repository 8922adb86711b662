#include "math/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "math/random.h"
#include "tests/math/isa_test.h"

namespace disttf::math {
namespace {

class Bf16 : public IsaTest {
 protected:
  static std::uint16_t bf16_of(float value) {
    std::uint16_t out = 0;
    to_bf16({&value, 1}, {&out, 1}, isa());
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, Bf16, testing::ValuesIn(kEveryIsa), isa_test_name);

float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// The definition: the nearer of the two bfloat16 around a finite value, or in a tie the one with an
// even last bit. Differences are exact in double.
std::uint16_t reference(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto toward_zero = static_cast<std::uint16_t>(bits >> 16U);
  if (!std::isfinite(value)) {
    return std::isnan(value) ? toward_zero | 0x0040U : toward_zero;
  }
  const auto away = static_cast<std::uint16_t>(toward_zero + 1U);
  const auto size_of = [](std::uint16_t half) {
    // After the largest finite value comes 2^128, which rounding represents as infinity.
    return (half & 0x7FFFU) == 0x7F80U
               ? std::ldexp(1.0, 128)
               : std::abs(double{float_of(static_cast<std::uint32_t>(half) << 16U)});
  };
  const double below = std::abs(double{value}) - size_of(toward_zero);
  const double above = size_of(away) - std::abs(double{value});
  if (below == above) {
    return toward_zero % 2 == 0 ? toward_zero : away;
  }
  return below < above ? toward_zero : away;
}

// Every upper half, with the lower halves at which the rounding direction changes.
std::vector<float> telling_values() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper <= 0xFFFFU; ++upper) {
    for (const std::uint32_t lower : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      values.push_back(float_of(upper << 16U | lower));
    }
  }
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    values.push_back(float_of(static_cast<std::uint32_t>(random_bits(1, 0, 0, i))));  // any float
  }
  return values;
}

TEST_P(Bf16, RoundsToTheNearestTiesToEven) {
  const std::vector<float> values = telling_values();
  std::vector<std::uint16_t> rounded(values.size());
  to_bf16(values, rounded, isa());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(rounded[i], reference(values[i]))
        << std::hex << std::bit_cast<std::uint32_t>(values[i]);
  }
}

TEST_P(Bf16, KnowsTheCasesByName) {
  EXPECT_EQ(bf16_of(1.0F), 0x3F80);
  EXPECT_EQ(bf16_of(-0.0F), 0x8000);
  EXPECT_EQ(bf16_of(float_of(0x3F808000)), 0x3F80) << "a tie, to the even one below";
  EXPECT_EQ(bf16_of(float_of(0x3F818000)), 0x3F82) << "a tie, to the even one above";
  EXPECT_EQ(bf16_of(std::numeric_limits<float>::max()), 0x7F80) << "nearer to 2^128";
  EXPECT_EQ(bf16_of(float_of(0x7F7F7FFF)), 0x7F7F) << "the largest that stays finite";
  EXPECT_EQ(bf16_of(-std::numeric_limits<float>::infinity()), 0xFF80);
  EXPECT_EQ(bf16_of(float_of(0x7F800001)), 0x7FC0) << "a NaN whose bits are all in the lower half";
  EXPECT_EQ(bf16_of(float_of(0xFFFFFFFF)), 0xFFFF) << "a NaN that would carry into 0";
  EXPECT_EQ(bf16_of(float_of(0x00000001)), 0x0000) << "the smallest denormal";
  EXPECT_EQ(bf16_of(float_of(0x00018000)), 0x0002) << "a denormal that ties";
}

TEST_P(Bf16, IsWidenedExactly) {
  std::vector<std::uint16_t> all(0x10000);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::uint16_t>(i);
  }
  std::vector<float> wide(all.size());
  from_bf16(all, wide, isa());
  for (std::uint32_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), i << 16U);
  }
}

TEST_P(Bf16, RoundingInPlaceIsThereAndBackAndDoneOnce) {
  std::vector<float> values = telling_values();
  std::vector<std::uint16_t> narrow(values.size());
  std::vector<float> round_trip(values.size());
  to_bf16(values, narrow, isa());
  from_bf16(narrow, round_trip, isa());
  round_to_bf16(values, values, isa());
  EXPECT_EQ(bits_of(values), bits_of(round_trip));
  round_to_bf16(values, values, isa());
  EXPECT_EQ(bits_of(values), bits_of(round_trip));
}

// The ranges of several ps may begin at any element.
TEST_P(Bf16, IsTheSameWhereverAVectorIsCut) {
  const std::vector<float> values = telling_values();
  std::vector<std::uint16_t> whole(values.size());
  to_bf16(values, whole, isa());
  std::vector<std::uint16_t> pieces(values.size());
  std::size_t at = 0;
  for (std::size_t length = 1; at < 5000; at += length, ++length) {
    to_bf16(std::span(values).subspan(at, length), std::span(pieces).subspan(at, length), isa());
  }
  EXPECT_TRUE(
      std::equal(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at), pieces.begin()));
}

}  // namespace
}  // namespace disttf::math
