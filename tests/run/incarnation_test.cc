#include "run/incarnation.h"

#include <gtest/gtest.h>

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

TEST(Incarnation, WhoBeginsLaterHasTheHigherOne) {
  EXPECT_LT(make_incarnation(milliseconds(1'700'000'000'000), kAllBits),
            make_incarnation(milliseconds(1'700'000'000'001), 0));
}

TEST(Incarnation, TwoOfOneMomentDiffer) {
  EXPECT_NE(make_incarnation(milliseconds(5), 1), make_incarnation(milliseconds(5), 2));
}

TEST(Incarnation, IsTheClocksWhereThatIsAheadOfTheOther) {
  const std::uint64_t other = make_incarnation(milliseconds(5), 9);
  const std::uint64_t fresh = make_incarnation(milliseconds(6), 3);
  EXPECT_EQ(incarnation_above(other, fresh), fresh);
}

TEST(Incarnation, IsAboveTheOtherWhereTheClockIsBehind) {
  const std::uint64_t other = make_incarnation(milliseconds(500), kAllBits);
  const std::uint64_t taken = incarnation_above(other, make_incarnation(milliseconds(6), 3));
  EXPECT_EQ(taken, make_incarnation(milliseconds(501), 3));
  EXPECT_GT(taken, other);
}

}  // namespace
}  // namespace disttf::roles
