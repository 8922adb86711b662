#include "math/top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "math/random.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

using testing::ElementsAre;
using Values = std::vector<float>;

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
