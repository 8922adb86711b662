#include "math/block_float.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "math/random.h"
#include "tests/math/isa_test.h"

namespace disttf::math {
namespace {

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

}  // namespace
}  // namespace disttf::math
