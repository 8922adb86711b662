#include "data/own/hold_out.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "math/random.h"

namespace disttf::data {
namespace {

HoldOut hold_out(const HeldOut& shares) {
  return {shares, static_cast<std::uint32_t>(math::Purpose::kHoldOut), &math::random_bits};
}

// Returns the rows of each part among the first `rows`.
std::array<std::uint64_t, kParts> counts(const HeldOut& shares, std::uint64_t rows) {
  HoldOut parts = hold_out(shares);
  std::array<std::uint64_t, kParts> sums{};
  for (std::uint64_t row = 0; row < rows; ++row) {
    ++sums[static_cast<std::size_t>(parts.part_of(row))];
  }
  return sums;
}

TEST(HoldOutTest, TakesItsShareOfEachTwentyRows) {
  for (std::uint64_t rows = 20; rows <= 400; rows += 20) {
    const auto sums = counts({.validation = 0.1, .test = 0.25}, rows);
    EXPECT_EQ(sums[1], rows / 10);
    EXPECT_EQ(sums[2], rows / 4);
  }
}

TEST(HoldOutTest, TakesSmallSharesOfSeveralTwenties) {
  const auto sums = counts({.validation = 0.01, .test = 0.004}, 1000);
  EXPECT_EQ(sums[1], 10U);
  EXPECT_EQ(sums[2], 4U);
  EXPECT_EQ(counts({.validation = 0, .test = 0}, 1000)[0], 1000U);
}

TEST(HoldOutTest, NeverTakesMoreThanThereIs) {
  const auto sums = counts({.validation = 0.52, .test = 0.479}, 100'000);
  EXPECT_NEAR(static_cast<double>(sums[1]), 52'000, 1);
  EXPECT_NEAR(static_cast<double>(sums[2]), 47'900, 5'000);
  EXPECT_GT(sums[0], 0U);
}

// A table whose classes alternate must not lose a whole class to the test part.
TEST(HoldOutTest, DrawsOtherPlacesInEachTwenty) {
  HoldOut parts = hold_out({});
  std::array<int, HoldOut::kGroupRows> at{};
  for (std::uint64_t row = 0; row < 20'000; ++row) {
    at[row % at.size()] += parts.part_of(row) == Part::kTest ? 1 : 0;
  }
  for (const int count : at) {  // 100 of 1000 are expected
    EXPECT_GT(count, 60);
    EXPECT_LT(count, 140);
  }
}

TEST(HoldOutTest, IsAFunctionOfTheRow) {
  HoldOut forwards = hold_out({});
  std::vector<Part> parts;
  for (std::uint64_t row = 0; row < 100; ++row) {
    parts.push_back(forwards.part_of(row));
  }
  HoldOut backwards = hold_out({});
  for (std::uint64_t row = 100; row-- > 0;) {
    EXPECT_EQ(backwards.part_of(row), parts[row]);
  }
}

}  // namespace
}  // namespace disttf::data
