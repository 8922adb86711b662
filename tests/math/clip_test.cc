#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "math/norm.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

using testing::ElementsAre;
using Values = std::vector<float>;

class Clip : public IsaTest {
 protected:
  static Values clipped(Values gradient, float most) {
    clip_by_norm(gradient, all_of(gradient), most, isa());
    return gradient;
  }
  static std::vector<Range> all_of(std::span<const float> values) {
    return {{.begin = 0, .end = values.size()}};
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, Clip, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(Clip, ScalesALongerGradientToTheBound) {
  EXPECT_THAT(clipped({3, 0, -4}, 2.5F), ElementsAre(1.5F, 0, -2));
}

TEST_P(Clip, LeavesAShorterOneAndOneOfThatLength) {
  EXPECT_THAT(clipped({3, 0, -4}, 5.5F), ElementsAre(3, 0, -4));
  EXPECT_THAT(clipped({3, 0, -4}, 5), ElementsAre(3, 0, -4));
  EXPECT_THAT(clipped({0, 0}, 1), ElementsAre(0, 0));
  EXPECT_THAT(clipped({}, 1), ElementsAre());
}

// In float the squares would be infinite, and the small ones 0.
TEST_P(Clip, HoldsForNumbersWhoseSquaresNoFloatHolds) {
  EXPECT_THAT(clipped({3e30F, -4e30F}, 5), ElementsAre(3, -4));
  EXPECT_FLOAT_EQ(
      static_cast<float>(norm_of(Values{3e-30F, -4e-30F}, std::vector<Range>{{0, 2}}, isa())),
      5e-30F);
}

TEST_P(Clip, LeavesWhatIsNoNumber) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(clipped({kNan, 7}, 1), ElementsAre(testing::IsNan(), 7));
}

// 2, 3 and 6 have the length 7; the others could be running statistics.
TEST_P(Clip, LeavesWhatIsInNoRange) {
  Values gradient = {100, 2, 3, 100, 100, 6, 100};
  clip_by_norm(gradient, std::vector<Range>{{1, 3}, {5, 6}}, 3.5F, isa());
  EXPECT_THAT(gradient, ElementsAre(100, 1, 1.5F, 100, 100, 3, 100));
}

// Follows the order that norm.h defines, with numbers whose sum rounds differently in another
// order.
TEST_P(Clip, AddsTheSquaresInSixteenChains) {
  for (const std::size_t size : {1U, 15U, 16U, 17U, 1000U}) {
    const AlignedVector values = made_up_numbers(size, 1);
    std::vector<double> chains(16);
    for (std::size_t i = 0; i < size; ++i) {
      chains[i % 16] += double{values.data()[i]} * double{values.data()[i]};
    }
    double sum = 0;
    for (const double chain : chains) {
      sum += chain;
    }
    EXPECT_EQ(norm_of(values.span(), all_of(values.span()), isa()), std::sqrt(sum)) << size;
  }
}

using Limits = std::numeric_limits<float>;

class Finite : public IsaTest {
 protected:
  [[nodiscard]] static bool is_finite(const Values& values) { return all_finite(values, isa()); }
};
INSTANTIATE_TEST_SUITE_P(Isas, Finite, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(Finite, AreAllNumbersHoweverLargeOrSmall) {
  EXPECT_TRUE(is_finite({}));
  EXPECT_TRUE(is_finite({0.0F, -0.0F, Limits::max(), Limits::lowest(), Limits::denorm_min()}));
  EXPECT_TRUE(is_finite(Values(1000, Limits::lowest())));
}

// In whole vector registers and after them.
TEST_P(Finite, IsNotWhereOneValueIsNoNumber) {
  for (const float value : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                            -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
    for (std::size_t size = 1; size < 130; size += 3) {
      for (std::size_t at = 0; at < size; ++at) {
        Values values(size, 1.0F);
        values[at] = value;
        ASSERT_FALSE(is_finite(values)) << value << " at " << at << " of " << size;
      }
    }
  }
}

}  // namespace
}  // namespace disttf::math
