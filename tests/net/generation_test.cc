#include "net/wire/generation.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace disttf::net {
namespace {

constexpr std::uint64_t kChief = 0x0123456789ABCDEF;
constexpr std::uint64_t kNewerChief = kChief + (1U << 20U);  // a millisecond later

TEST(Generation, BeginsWithItsChiefAndCountsFromOne) {
  const Generation first = generation_after(0, kChief);
  EXPECT_EQ(first, 0x0123456789ABC001U);
  EXPECT_EQ(number_of(first), 1U);
  EXPECT_EQ(number_of(generation_after(first, kChief)), 2U);
}

TEST(Generation, IsAboveTheNewestThatWasKnown) {
  const Generation older = generation_after(generation_after(0, kChief), kChief);
  const Generation newer = generation_after(older, kNewerChief);
  EXPECT_GT(newer, older);
  EXPECT_EQ(number_of(newer), 3U);
  // The clock of the newer chief was behind.
  EXPECT_GT(generation_after(newer, kChief), newer);
}

TEST(Generation, OfTwoChiefsThatDoNotKnowOfEachOtherIsNeverOne) {
  const Generation known = generation_after(0, kChief);
  Generation older = known;
  const Generation newer = generation_after(known, kNewerChief);
  for (int times = 0; times < 1000; ++times) {
    older = generation_after(older, kChief);
    EXPECT_LT(older, newer);
  }
}

TEST(Generation, RisesWhenItsNumberBeginsAgain) {
  const Generation last = generation_after(0, kChief) + 4094;
  EXPECT_EQ(number_of(last), 4095U);
  const Generation next = generation_after(last, kChief);
  EXPECT_GT(next, last);
  EXPECT_EQ(number_of(next), 0U);
}

}  // namespace
}  // namespace disttf::net
