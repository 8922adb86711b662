#include "math/rate_schedule.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace disttf::math {
namespace {

TEST(RateDecay, NamesAreReadBack) {
  for (const std::string_view name : kRateDecayNames) {
    const std::optional<RateDecay> decay = rate_decay_from_name(name);
    ASSERT_TRUE(decay.has_value()) << name;
    EXPECT_EQ(rate_decay_name(*decay), name);
  }
  EXPECT_EQ(rate_decay_from_name("polynomial"), std::nullopt);
}

struct Point {
  RateDecay decay;
  std::uint64_t steps;
  std::uint64_t warmup_steps;
  std::uint64_t step;
  double factor;
};

// From Python's math.cos and the formulas of torch.optim.lr_scheduler.OneCycleLR (max_lr 1) and
// CosineAnnealingLR, preceded by t / warmup_steps of the first value.
const std::vector<Point> kPoints = {
    {RateDecay::kLinear, 2000, 0, 0, 1.0},
    {RateDecay::kLinear, 2000, 0, 1, 0.9995},
    {RateDecay::kLinear, 2000, 0, 1999, 0.0004999999999999449},
    {RateDecay::kLinear, 2000, 500, 0, 0.0},
    {RateDecay::kLinear, 2000, 500, 1, 0.002},
    {RateDecay::kLinear, 2000, 500, 499, 0.998},
    {RateDecay::kLinear, 2000, 500, 500, 1.0},
    {RateDecay::kLinear, 2000, 500, 501, 0.9993333333333333},
    {RateDecay::kLinear, 2000, 500, 1999, 0.0006666666666667043},
    {RateDecay::kNone, 10, 4, 0, 0.0},
    {RateDecay::kNone, 10, 4, 1, 0.25},
    {RateDecay::kNone, 10, 4, 3, 0.75},
    {RateDecay::kNone, 10, 4, 4, 1.0},
    {RateDecay::kNone, 10, 4, 9, 1.0},
    {RateDecay::kCosine, 2000, 0, 0, 1.0},
    {RateDecay::kCosine, 2000, 0, 1, 0.9999993831498517},
    {RateDecay::kCosine, 2000, 0, 400, 0.9045084971874737},
    {RateDecay::kCosine, 2000, 0, 1000, 0.5},
    {RateDecay::kCosine, 2000, 0, 1500, 0.14644660940672627},
    {RateDecay::kCosine, 2000, 0, 1999, 6.168501482384237e-07},
    {RateDecay::kCosine, 2000, 100, 0, 0.0},
    {RateDecay::kCosine, 2000, 100, 50, 0.5},
    {RateDecay::kCosine, 2000, 100, 99, 0.99},
    {RateDecay::kCosine, 2000, 100, 100, 1.0},
    {RateDecay::kCosine, 2000, 100, 1050, 0.5},
    {RateDecay::kCosine, 2000, 100, 1999, 6.834904537900144e-07},
    {RateDecay::kCosine, 1, 0, 0, 1.0},
    {RateDecay::kOneCycle, 2000, 0, 0, 0.040000000000000036},
    {RateDecay::kOneCycle, 2000, 0, 1, 0.04000660170854198},
    {RateDecay::kOneCycle, 2000, 0, 200, 0.2807270973561089},
    {RateDecay::kOneCycle, 2000, 0, 598, 0.9999933982914581},
    {RateDecay::kOneCycle, 2000, 0, 599, 1.0},
    {RateDecay::kOneCycle, 2000, 0, 600, 0.9999987411274514},
    {RateDecay::kOneCycle, 2000, 0, 1000, 0.8108676604285944},
    {RateDecay::kOneCycle, 2000, 0, 1998, 5.258872548610129e-06},
    {RateDecay::kOneCycle, 2000, 0, 1999, 4e-06},
    {RateDecay::kOneCycle, 105, 0, 15, 0.5076410014456054},
    {RateDecay::kOneCycle, 105, 0, 30, 0.9993635631447186},
    {RateDecay::kOneCycle, 105, 0, 31, 0.9998858208468724},
    {RateDecay::kOneCycle, 105, 0, 32, 0.9989727004843827},
    {RateDecay::kOneCycle, 105, 0, 104, 4e-06},
    {RateDecay::kOneCycle, 2000, 1000, 0, 0.0},
    {RateDecay::kOneCycle, 2000, 1000, 500, 0.020000000000000018},
    {RateDecay::kOneCycle, 2000, 1000, 999, 0.03996000000000004},
    {RateDecay::kOneCycle, 2000, 1000, 1000, 0.040000000000000036},
    {RateDecay::kOneCycle, 2000, 1000, 1299, 1.0},
    {RateDecay::kOneCycle, 2000, 1000, 1999, 4e-06},
    {RateDecay::kOneCycle, 1, 0, 0, 4e-06},
    {RateDecay::kOneCycle, 3, 0, 0, 0.9944154354509117},
    {RateDecay::kOneCycle, 3, 0, 1, 0.46263710266697505},
    {RateDecay::kOneCycle, 3, 0, 2, 4e-06},
};

TEST(RateFactor, IsWhatTheFormulasSay) {
  for (const Point& point : kPoints) {
    const RateSchedule schedule{
        .decay = point.decay, .steps = point.steps, .warmup_steps = point.warmup_steps};
    EXPECT_NEAR(double{rate_factor(schedule, point.step)}, point.factor, 1e-7)
        << rate_decay_name(point.decay) << ", step " << point.step << " of " << point.steps << ", "
        << point.warmup_steps << " of them to warm up";
  }
}

// Also for small factors, where the comparison above cannot detect a difference of a ten-millionth.
TEST(RateFactor, EndsOneCycleAtItsLastFactor) {
  EXPECT_FLOAT_EQ(rate_factor({.decay = RateDecay::kOneCycle, .steps = 2000}, 1999), 4e-6F);
}

// The bits of runs with the default schedule.
TEST(RateFactor, OfTheLinearScheduleIsADivisionOfFloats) {
  for (const std::uint64_t steps : {1U, 7U, 2000U, 12345U}) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      ASSERT_EQ(rate_factor({.steps = steps}, step),
                1.0F - static_cast<float>(step) / static_cast<float>(steps));
    }
  }
}

// Bit-identical on every machine: pinned from one of them.
TEST(RateFactor, HasTheseBits) {
  const RateSchedule cosine{.decay = RateDecay::kCosine, .steps = 2000};
  const RateSchedule cycle{.decay = RateDecay::kOneCycle, .steps = 2000, .warmup_steps = 7};
  const auto sum_of_bits = [](const RateSchedule& schedule) {
    std::uint64_t sum = 0;
    for (std::uint64_t step = 0; step < schedule.steps; ++step) {
      sum = sum * 31 + std::bit_cast<std::uint32_t>(rate_factor(schedule, step));
    }
    return sum;
  };
  EXPECT_EQ(sum_of_bits(cosine), 10478072974617381495U);
  EXPECT_EQ(sum_of_bits(cycle), 14492079751238460939U);
}

TEST(RateFactor, NeverLeavesZeroToOne) {
  for (const std::string_view name : kRateDecayNames) {
    for (const std::uint64_t steps : {1U, 2U, 3U, 4U, 5U, 100U}) {
      for (std::uint64_t warmup = 0; warmup < steps; ++warmup) {
        for (std::uint64_t step = 0; step < steps; ++step) {
          const float factor = rate_factor(
              {.decay = rate_decay_from_name(name).value(), .steps = steps, .warmup_steps = warmup},
              step);
          ASSERT_TRUE(factor >= 0 && factor <= 1)
              << name << ", step " << step << " of " << steps << ", warm-up " << warmup;
        }
      }
    }
  }
}

}  // namespace
}  // namespace disttf::math
