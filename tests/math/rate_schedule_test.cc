#include "math/rate_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "math/names.h"
#include "math/optimizer.h"
#include "math/optimizer_rules.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

TEST(RateDecay, NamesAreReadBack) {
  for (const std::string_view name : kRateDecayNames) {
    const std::optional<RateDecay> decay = value_of<RateDecay>(kRateDecayNames, name);
    ASSERT_TRUE(decay.has_value()) << name;
    EXPECT_EQ(rate_decay_name(*decay), name);
  }
  EXPECT_EQ(value_of<RateDecay>(kRateDecayNames, "polynomial"), std::nullopt);
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
          const float factor =
              rate_factor({.decay = value_of<RateDecay>(kRateDecayNames, name).value(),
                           .steps = steps,
                           .warmup_steps = warmup},
                          step);
          ASSERT_TRUE(factor >= 0 && factor <= 1)
              << name << ", step " << step << " of " << steps << ", warm-up " << warmup;
        }
      }
    }
  }
}

// Variables with factors of the learning rate among the parameters of an optimizer.

class RateFactor : public IsaTest {
 protected:
  // None ends at the end of a vector register.
  static ParameterLayout layout_with(float half, float frozen) {
    ParameterLayout layout;
    layout.add({.name = "a_w", .shape = {301}});
    layout.add({.name = "half_w", .shape = {37}, .rate_factor = half});
    layout.add({.name = "half_b", .shape = {5}, .decays = false, .rate_factor = half});
    layout.add({.name = "mean", .shape = {21}, .momentum = 0.9F});
    layout.add({.name = "frozen_w", .shape = {21}, .rate_factor = frozen});
    layout.add({.name = "b_w", .shape = {43}});
    return layout;
  }
  static OptimizerSpec spec_of(std::size_t kind) {
    return {.kind = static_cast<OptimizerKind>(kind),
            .learning_rate = 0.0625F,
            .weight_decay = 0.1F,
            .average_decay = 0.9F};
  }
  struct Result {
    AlignedVector parameters;
    std::vector<AlignedVector> state;
  };
  // Three steps. Updated in pieces that end at `cuts` and at the end; out of place if `streams`.
  static Result trained(const OptimizerSpec& spec, const ParameterLayout& layout,
                        std::vector<std::size_t> cuts = {}, bool streams = false) {
    Result result{.parameters = made_up_numbers(layout.size(), 1), .state = {}};
    for (std::size_t i = 0; i < state_tensors(spec); ++i) {
      result.state.emplace_back(layout.size());
    }
    cuts.push_back(layout.size());
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
      const Range part{begin, end};
      Optimizer optimizer(spec, part.size(), isa(), /*threads=*/1, layout.decaying(part),
                          layout.running(part), layout.rate_factors(part));
      optimizer.stream_updates(streams);
      const std::span<float> parameters = result.parameters.span().subspan(begin, part.size());
      optimizer.begin_average(parameters);
      for (std::uint64_t step = 1; step <= 3; ++step) {
        const AlignedVector gradient = made_up_numbers(layout.size(), 10 + step);
        AlignedVector updated(part.size());
        optimizer.apply(parameters, updated.span(), gradient.span().subspan(begin, part.size()),
                        0.5F, step);
        std::ranges::copy(updated.span(), parameters.begin());
      }
      for (std::size_t i = 0; i < result.state.size(); ++i) {
        std::ranges::copy(optimizer.state()[i].values,
                          result.state[i].span().begin() + static_cast<std::ptrdiff_t>(begin));
      }
      begin = end;
    }
    return result;
  }
  static std::vector<float> of(const AlignedVector& values, const Variable& variable) {
    const auto part = values.span().subspan(variable.offset, variable.size);
    return {part.begin(), part.end()};
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, RateFactor, testing::ValuesIn(kEveryIsa), isa_test_name);

// The factor is a power of two, so an optimizer with half of the rate is bit-identical. The decay
// of adamw is part of that: it is a share of the rate.
TEST_P(RateFactor, MultipliesTheRateOfEveryKind) {
  for (std::size_t kind = 0; kind < OptimizerRules::kCount; ++kind) {
    const OptimizerSpec spec = spec_of(kind);
    OptimizerSpec half = spec;
    half.learning_rate /= 2;
    const ParameterLayout layout = layout_with(0.5F, 0);
    const Result with_factor = trained(spec, layout);
    const Result at_rate = trained(spec, layout_with(1, 1));
    const Result at_half = trained(half, layout_with(1, 1));
    for (const Variable& variable : layout.variables()) {
      if (variable.rate_factor == 0) {
        continue;
      }
      const Result& expected = variable.rate_factor == 1 ? at_rate : at_half;
      EXPECT_EQ(of(with_factor.parameters, variable), of(expected.parameters, variable))
          << optimizer_names()[kind] << " " << variable.name;
      for (std::size_t i = 0; i < expected.state.size(); ++i) {
        EXPECT_EQ(of(with_factor.state[i], variable), of(expected.state[i], variable))
            << optimizer_names()[kind] << " " << variable.name << " state " << i;
      }
    }
  }
}

TEST_P(RateFactor, OfZeroChangesNothing) {
  for (std::size_t kind = 0; kind < OptimizerRules::kCount; ++kind) {
    const ParameterLayout layout = layout_with(0.5F, 0);
    const Variable& frozen = layout.variables()[4];
    const AlignedVector initial = made_up_numbers(layout.size(), 1);
    const Result result = trained(spec_of(kind), layout);
    EXPECT_EQ(of(result.parameters, frozen), of(initial, frozen)) << optimizer_names()[kind];
    // The average of what never changes is that.
    EXPECT_EQ(of(result.state.back(), frozen), of(initial, frozen)) << optimizer_names()[kind];
    for (std::size_t i = 0; i + 1 < result.state.size(); ++i) {
      Optimizer fresh(spec_of(kind), 1, isa());
      const float start = initial_state_value(fresh.state()[i].name);
      EXPECT_EQ(of(result.state[i], frozen), std::vector<float>(frozen.size, start))
          << optimizer_names()[kind];
    }
  }
}

TEST_P(RateFactor, IsBitIdenticalHoweverTheVectorIsCutAndStored) {
  const ParameterLayout layout = layout_with(0.3F, 0);
  for (std::size_t kind = 0; kind < OptimizerRules::kCount; ++kind) {
    const Result whole = trained(spec_of(kind), layout);
    for (const bool streams : {false, true}) {
      const Result cut = trained(spec_of(kind), layout, {16, 320, 336, 384, 432}, streams);
      EXPECT_TRUE(std::ranges::equal(whole.parameters.span(), cut.parameters.span()))
          << optimizer_names()[kind];
    }
  }
}

}  // namespace
}  // namespace disttf::math
