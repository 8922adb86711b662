#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "math/random.h"
#include "math/rounding.h"
#include "math/top_k.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

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

using testing::Each;
using testing::ElementsAre;
using Values = std::vector<float>;

struct Case {
  Isa isa;
  unsigned bits;
};
void PrintTo(const Case& each, std::ostream* out) { *out << isa_name(each.isa) << each.bits; }

class BlockFloat : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (std::ranges::find(supported_isas(), isa()) == supported_isas().end()) {
      GTEST_SKIP() << "this machine, or this build, has no " << isa_name(isa());
    }
  }
  static Isa isa() { return GetParam().isa; }
  static unsigned bits() { return GetParam().bits; }
  static Values rounded(const Values& values) {
    Values out(values.size());
    round_to_block_float(values, bits(), out, isa());
    return out;
  }
  static std::vector<std::byte> written(const Values& values) {
    std::vector<std::byte> out(block_float_bytes(values.size(), bits()));
    to_block_float(values, bits(), out, isa());
    return out;
  }
};
std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const Isa isa : kEveryIsa) {
    cases.push_back({.isa = isa, .bits = 8});
    cases.push_back({.isa = isa, .bits = 4});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, BlockFloat, testing::ValuesIn(every_case()), [](const auto& each) {
  return std::string(isa_name(each.param.isa)) + std::to_string(each.param.bits);
});

// Numbers of every size, with some blocks of zeros and one short block.
Values made_up_blocks() {
  Values values(16 * 400 + 5);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = random_bits(1, 0, 0, i);
    const int scale = static_cast<int>(i / 16 % 230) - 110;
    const double part = static_cast<double>(bits % 2'000'001) / 1e6 - 1.0;
    values[i] = static_cast<float>(std::ldexp(part, scale));
  }
  std::fill_n(values.begin() + 160, 16, 0.0F);
  return values;
}

// By the definition, in double.
TEST_P(BlockFloat, RoundsToTheNearestInUnitsOfTheLargest) {
  const Values values = made_up_blocks();
  const Values out = rounded(values);
  const double most = std::ldexp(1.0, static_cast<int>(bits()) - 1) - 1;
  for (std::size_t begin = 0; begin < values.size(); begin += 16) {
    const std::size_t end = std::min(begin + 16, values.size());
    double largest = 0;
    for (std::size_t i = begin; i < end; ++i) {
      largest = std::max(largest, std::abs(double{values[i]}));
    }
    const int exponent = largest > 0 ? std::ilogb(largest) : 0;
    const double unit = std::ldexp(1.0, exponent - static_cast<int>(bits()) + 2);
    for (std::size_t i = begin; i < end; ++i) {
      const double expected =
          largest < 0x1p-111 ? 0 : std::clamp(std::nearbyint(values[i] / unit), -most, most) * unit;
      ASSERT_EQ(double{out[i]}, expected) << i;
    }
  }
}

TEST_P(BlockFloat, BytesBringBackWhatRoundingMade) {
  const Values values = made_up_blocks();
  const std::vector<std::byte> bytes = written(values);
  Values out(values.size());
  from_block_float(bytes, bits(), out, isa());
  EXPECT_EQ(out, rounded(values));
}

TEST_P(BlockFloat, IsDoneOnceAndInPlace) {
  Values values = made_up_blocks();
  const Values once = rounded(values);
  round_to_block_float(values, bits(), values, isa());
  EXPECT_EQ(bits_of(values), bits_of(once));
  EXPECT_EQ(rounded(once), once);
  EXPECT_EQ(written(once), written(made_up_blocks()));
}

TEST_P(BlockFloat, IsTheSameWhereverAVectorIsCutBetweenBlocks) {
  const Values values = made_up_blocks();
  const Values whole = rounded(values);
  Values pieces(values.size());
  for (std::size_t at = 0, length = 16; at < values.size(); at += length, length += 16) {
    const std::size_t count = std::min(length, values.size() - at);
    round_to_block_float(std::span(values).subspan(at, count), bits(),
                         std::span(pieces).subspan(at, count), isa());
  }
  EXPECT_EQ(pieces, whole);
}

TEST_P(BlockFloat, OfWhatIsNotFiniteIsNaN) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Values values(32, 1.0F);
    values[20] = value;
    for (const Values& out : {rounded(values), [&] {
                                Values read(values.size());
                                from_block_float(written(values), bits(), read, isa());
                                return read;
                              }()}) {
      EXPECT_THAT(std::vector(out.begin(), out.begin() + 16), Each(1.0F));
      EXPECT_TRUE(std::all_of(out.begin() + 16, out.end(), [](float x) { return std::isnan(x); }));
    }
  }
}

TEST_P(BlockFloat, TakesTheLargestAndTheSmallestFloats) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const Values out = rounded({kMax, -kMax, 1.0F});
  EXPECT_TRUE(std::isfinite(out[0]));
  EXPECT_EQ(out[0], -out[1]);
  EXPECT_NEAR(out[0] / kMax, 1.0, bits() == 8 ? 0.01 : 0.13);
  EXPECT_EQ(rounded({std::numeric_limits<float>::denorm_min(), 1e-38F}), (Values{0, 0}));
}

// Bytes that a peer may invent.
TEST_P(BlockFloat, TakesAnyBytes) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::vector<std::byte> bytes(block_float_bytes(33, bits()), static_cast<std::byte>(byte));
    Values out(33);
    from_block_float(bytes, bits(), out, isa());
    EXPECT_EQ(std::isnan(out[32]), byte == 255) << byte;
  }
}

TEST(BlockFloat8, HasTheBytesOfTheDocument) {
  const Values values = {1, -0.5F, 1.0F / 128.0F, 3.0F / 128.0F, 0};
  std::vector<std::byte> bytes(block_float_bytes(values.size(), 8));
  to_block_float(values, 8, bytes, Isa::kGeneric);
  EXPECT_THAT(bytes, ElementsAre(std::byte{127}, std::byte{64}, std::byte{0xE0}, std::byte{0},
                                 std::byte{2}, std::byte{0}))
      << "1/128 is half a unit and goes to the even 0, 3/128 to the even 2";
}

TEST(BlockFloat4, HasTheBytesOfTheDocument) {
  const Values values = {1, -0.5F, 0.25F, 1.9F, -2.0F};
  std::vector<std::byte> bytes(block_float_bytes(values.size(), 4));
  to_block_float(values, 4, bytes, Isa::kGeneric);
  // In units of 1/2: 2, -1, 0.5 (to the even 0), 3.8, -4.
  EXPECT_THAT(bytes,
              ElementsAre(std::byte{128}, std::byte{0xF2}, std::byte{0x40}, std::byte{0x0C}));
}

Values selected(TopK& top, Values gradient) {
  top.select(gradient);
  return gradient;
}

Values of(const AlignedVector& vector) { return {vector.span().begin(), vector.span().end()}; }

TEST(TopK, SendsTheLargestAndKeepsTheRest) {
  TopK top(5, 2, false);
  EXPECT_THAT(selected(top, {1, -4, 2, 3, 0}), ElementsAre(0, -4, 0, 3, 0));
  EXPECT_THAT(selected(top, {1, 0, 1, 0, 0}), ElementsAre(2, 0, 3, 0, 0)) << "with what was kept";
  EXPECT_THAT(selected(top, {0, 0, 0, 0, 0}), ElementsAre(0, 0, 0, 0, 0))
      << "nothing is sent twice";
}

TEST(TopK, SendsTheLowerIndexOfEqualMagnitudes) {
  TopK top(6, 3, false);
  EXPECT_THAT(selected(top, {-1, 2, 1, 1, -1, 1}), ElementsAre(-1, 2, 1, 0, 0, 0));
}

TEST(TopK, NeverSendsAZero) {
  TopK top(4, 3, false);
  EXPECT_EQ(bits_of(selected(top, {-0.0F, 0, 1, -0.0F})), bits_of(Values{0, 0, 1, 0}));
}

TEST(TopK, SendsAllWhereThereAreNotMore) {
  TopK top(3, 5, false);
  EXPECT_THAT(selected(top, {1, 2, 3}), ElementsAre(1, 2, 3));
}

// A diverged run must not look healthy.
TEST(TopK, SendsANaNFirst) {
  TopK top(3, 1, false);
  EXPECT_TRUE(std::isnan(
      selected(top, {1, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max()})
          .at(1)));
}

TEST(TopK, IsWhatSortingFinds) {
  constexpr std::size_t kSize = 5000;
  for (const std::size_t count : {1U, 2U, 50U, 777U, 4999U}) {
    TopK top(kSize, count, false);
    Values gradient = of(made_up_numbers(kSize, count));
    for (std::size_t i = 0; i < kSize; i += 7) {
      gradient[i] = gradient[(i + 700) % kSize];  // ties
    }
    std::vector<std::size_t> order(kSize);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::abs(gradient[a]) > std::abs(gradient[b]);
    });
    Values expected(kSize);
    for (std::size_t i = 0; i < count; ++i) {
      expected[order[i]] = gradient[order[i]];
    }
    EXPECT_EQ(selected(top, gradient), expected) << count;
  }
}

TEST(TopK, KeepsWhatRoundingTakesOff) {
  TopK top(1, 1, true);
  const float value = 1.0F + 1.0F / 512.0F;  // between the bfloat16 values 1 and 1 + 1/128
  EXPECT_THAT(selected(top, {value}), ElementsAre(1.0F));
  EXPECT_THAT(selected(top, {0.0F}), ElementsAre(1.0F / 512.0F));
}

TEST(TopK, LosesNothingOverManySteps) {
  constexpr std::size_t kSize = 100;
  TopK top(kSize, 3, true);
  Values sent(kSize);
  for (int step = 0; step < 200; ++step) {
    Values part = selected(top, step == 0 ? of(made_up_numbers(kSize, 3)) : Values(kSize));
    std::ranges::transform(sent, part, sent.begin(), std::plus());
  }
  // bfloat16 removes at least 7 of 24 bits each time, so everything has been sent. Sums of parts
  // without common bits are exact.
  EXPECT_EQ(sent, of(made_up_numbers(kSize, 3)));
}

TEST(TopK, TakesBackWhatWasNotUsed) {
  TopK top(4, 1, false);
  const Values sent = selected(top, {0, 0, 5, 1});
  top.take_back(2, std::span(sent).subspan(2));
  EXPECT_THAT(selected(top, {0, 0, 0, 0}), ElementsAre(0, 0, 5, 0));
}

TEST(TopK, BeginsAnewAfterAReset) {
  TopK top(2, 1, false);
  static_cast<void>(selected(top, {5, 4}));
  top.reset();
  EXPECT_THAT(selected(top, {0, 0}), ElementsAre(0, 0));
}

}  // namespace
}  // namespace disttf::math
