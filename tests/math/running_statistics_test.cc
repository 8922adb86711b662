// Running statistics among the parameters of an optimizer: their rule does not depend on the
// optimizer.
#include <gtest/gtest.h>

#include <vector>

#include "math/optimizer.h"
#include "math/optimizer_rules.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

class RunningStatistics : public IsaTest {
 protected:
  // A weight, statistics of two momenta, a weight; none ends at the end of a vector register.
  static ParameterLayout mixed_layout() {
    ParameterLayout layout;
    layout.add("a_w", {301});
    layout.add("mean", {21}, /*decays=*/false, /*momentum=*/0.9F);
    layout.add("variance", {21}, /*decays=*/false, /*momentum=*/0.75F);
    layout.add("b_w", {43});
    return layout;
  }
  // Uses everything that could change a parameter.
  static OptimizerSpec spec_with_all(OptimizerKind kind) {
    return {.kind = kind, .learning_rate = 0.05F, .weight_decay = 0.1F};
  }
  static std::vector<OptimizerKind> all_kinds() {
    std::vector<OptimizerKind> kinds;
    for (std::size_t kind = 0; kind < OptimizerRules::kCount; ++kind) {
      kinds.push_back(static_cast<OptimizerKind>(kind));
    }
    return kinds;
  }
  // Returns the parameters after three steps with sums of two gradients; the update itself adds the
  // second one if `apart`. Updated in pieces that end at `cuts` and at the end.
  static AlignedVector trained(const OptimizerSpec& spec, std::vector<std::size_t> cuts = {},
                               bool apart = false, std::size_t threads = 1) {
    const ParameterLayout layout = mixed_layout();
    AlignedVector parameters = made_up_numbers(layout.size(), 1);
    cuts.push_back(layout.size());
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
      const Range part{begin, end};
      Optimizer optimizer(spec, part.size(), isa(), threads, layout.decaying(part),
                          layout.running(part));
      const auto of_part = [&](AlignedVector& values) {
        return values.span().subspan(part.begin, part.size());
      };
      for (std::uint64_t step = 1; step <= 3; ++step) {
        AlignedVector first = made_up_numbers(layout.size(), 10 + step);
        AlignedVector last = made_up_numbers(layout.size(), 20 + step);
        if (!apart) {
          add(first.span(), first.span(), last.span(), isa());
        }
        optimizer.apply(of_part(parameters), of_part(parameters), of_part(first), 0.5F, step,
                        /*rate_factor=*/0.5F,
                        apart ? std::span<const float>(of_part(last)) : std::span<const float>());
      }
      begin = end;
    }
    return parameters;
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, RunningStatistics, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(RunningStatistics, MoveTowardsTheMeanOfWhatIsPushedWhateverTheOptimizer) {
  const ParameterLayout layout = mixed_layout();
  AlignedVector expected = made_up_numbers(layout.size(), 1);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const AlignedVector first = made_up_numbers(layout.size(), 10 + step);
    const AlignedVector last = made_up_numbers(layout.size(), 20 + step);
    for (const RunningRange& each : layout.running({0, layout.size()})) {
      const float rest = 1.0F - each.momentum;
      for (std::size_t i = each.range.begin; i < each.range.end; ++i) {
        const float mean = (first.data()[i] + last.data()[i]) * 0.5F;
        expected.data()[i] = each.momentum * expected.data()[i] + rest * mean;
      }
    }
  }
  for (const OptimizerKind kind : all_kinds()) {
    const AlignedVector found = trained(spec_with_all(kind));
    for (const RunningRange& each : layout.running({0, layout.size()})) {
      const auto of = [&](const AlignedVector& values) {
        return bits_of(values.span().subspan(each.range.begin, each.range.size()));
      };
      EXPECT_EQ(of(found), of(expected)) << optimizer_name(kind);
    }
  }
}

TEST_P(RunningStatistics, LeaveTheOthersAsTheyAre) {
  const ParameterLayout layout = mixed_layout();
  ParameterLayout without;
  for (const Variable& variable : layout.variables()) {
    without.add(variable.name, variable.shape, variable.decays);
  }
  const Range all{0, layout.size()};
  for (const OptimizerKind kind : all_kinds()) {
    const AlignedVector found = trained(spec_with_all(kind));
    AlignedVector expected = made_up_numbers(layout.size(), 1);
    Optimizer optimizer(spec_with_all(kind), layout.size(), isa(), 1, layout.decaying(all));
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const AlignedVector first = made_up_numbers(layout.size(), 10 + step);
      const AlignedVector last = made_up_numbers(layout.size(), 20 + step);
      optimizer.apply(expected.span(), expected.span(), first.span(), 0.5F, step, 0.5F,
                      last.span());
    }
    for (const Range& range : layout.trained()) {
      EXPECT_EQ(bits_of(found.span().subspan(range.begin, range.size())),
                bits_of(expected.span().subspan(range.begin, range.size())))
          << optimizer_name(kind);
    }
  }
}

TEST_P(RunningStatistics, AreBitIdenticalHoweverTheVectorIsCutAndTheSumIsMade) {
  for (const OptimizerKind kind : all_kinds()) {
    const OptimizerSpec spec = spec_with_all(kind);
    const auto whole = bits_of(trained(spec).span());
    EXPECT_EQ(bits_of(trained(spec, {310}).span()), whole) << optimizer_name(kind);
    EXPECT_EQ(bits_of(trained(spec, {1, 304, 305, 320, 325, 336, 345, 360}).span()), whole)
        << optimizer_name(kind);
    EXPECT_EQ(bits_of(trained(spec, {}, /*apart=*/true).span()), whole) << optimizer_name(kind);
  }
}

// The average of the parameters uses statistics that are averaged in the same way.
TEST_P(RunningStatistics, AreAveragedAsTheOthersAre) {
  Optimizer optimizer({.kind = OptimizerKind::kSgd, .average_decay = 0.9F}, 1, isa(), 1,
                      std::vector<Range>{}, {{.range = {0, 1}, .momentum = 0.5F}});
  std::vector<float> value = {1};
  optimizer.begin_average(value);
  optimizer.apply(value, std::vector<float>{3}, 1.0F, 1);
  EXPECT_FLOAT_EQ(value[0], 2.0F);
  // d = 2 / 11
  EXPECT_FLOAT_EQ(optimizer.average()[0], 2.0F / 11.0F * 1.0F + 9.0F / 11.0F * 2.0F);
}

}  // namespace
}  // namespace disttf::math
