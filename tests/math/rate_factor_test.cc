// Variables with factors of the learning rate among the parameters of an optimizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "math/optimizer.h"
#include "math/optimizer_rules.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

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
