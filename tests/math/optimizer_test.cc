#include "math/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"
#include "tests/support/thrown.h"

namespace disttf::math {
namespace {

// All of the registry, so a new optimizer is tested automatically.
const std::vector<OptimizerKind> kEveryKind = [] {
  std::vector<OptimizerKind> kinds;
  for (const std::string_view name : optimizer_names()) {
    kinds.push_back(optimizer_from_name(name).value());
  }
  return kinds;
}();

TEST(OptimizerName, ComesBack) {
  EXPECT_THAT(optimizer_names(),
              testing::ElementsAre("sgd", "momentum", "adagrad", "adam", "adamw"));
  for (const OptimizerKind kind : kEveryKind) {
    EXPECT_EQ(optimizer_from_name(optimizer_name(kind)), kind);
  }
  EXPECT_EQ(optimizer_from_name("rmsprop"), std::nullopt);
}

void expect_refused(const OptimizerSpec& spec, const std::string& field) {
  EXPECT_THAT(sentence_of([&] { validate(spec); }), testing::StartsWith(field + ": "))
      << field << " was accepted";
}

TEST(OptimizerSpec, IsRefusedWithTheField) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.0F, -0.1F, kNan, kInfinity}) {
    expect_refused({.learning_rate = value}, "learning_rate");
    expect_refused({.epsilon = value}, "epsilon");
  }
  for (const float value : {-0.1F, 1.0F, kNan}) {
    expect_refused({.momentum = value}, "momentum");
    expect_refused({.beta1 = value}, "beta1");
    expect_refused({.beta2 = value}, "beta2");
    expect_refused({.weight_decay = value}, "weight_decay");
    expect_refused({.average_decay = value}, "average_decay");
  }
}

TEST(OptimizerRegistry, TellsADefaultLearningRateThatIsAllowed) {
  for (const OptimizerKind kind : kEveryKind) {
    EXPECT_NO_THROW(validate({.kind = kind, .learning_rate = default_learning_rate(kind)}));
  }
}

// The initial value fills a checkpoint's padding; only the tensor's name identifies it.
TEST(OptimizerRegistry, TellsWhatEachTensorOfStateBeginsWith) {
  for (const OptimizerKind kind : kEveryKind) {
    Optimizer optimizer({.kind = kind}, 1, Isa::kGeneric);
    for (const StateTensor& tensor : optimizer.state()) {
      EXPECT_EQ(tensor.values[0], initial_state_value(tensor.name)) << tensor.name;
    }
  }
  EXPECT_EQ(initial_state_value("accumulator"), 0.1F);
  EXPECT_EQ(initial_state_value("no such tensor"), 0.0F);
}

class OptimizerOf : public IsaTest {
 protected:
  // Returns the parameter after one step for each gradient, starting at 1.
  static float follow(const OptimizerSpec& spec, const std::vector<float>& gradients) {
    Optimizer optimizer(spec, 1, isa());
    std::vector<float> parameter = {1.0F};
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      optimizer.apply(parameter, std::vector<float>{gradients[i]}, 1.0F, i + 1);
    }
    return parameter[0];
  }

  static OptimizerSpec spec_of(OptimizerKind kind, float weight_decay = 0) {
    return {.kind = kind, .learning_rate = 0.01F, .weight_decay = weight_decay};
  }

  // Returns a vector of `size` after five steps, updated in pieces that end at `cuts` and at the
  // end. Weight decay follows `layout`; without a layout it applies to all elements.
  static std::vector<std::uint32_t> after_steps(
      const OptimizerSpec& spec, Isa isa, std::size_t size, std::vector<std::size_t> cuts,
      const std::optional<ParameterLayout>& layout = std::nullopt) {
    AlignedVector parameters = made_up_numbers(size, 1);
    cuts.push_back(size);
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
      const auto decaying = layout ? std::optional(layout->decaying({begin, end})) : std::nullopt;
      Optimizer optimizer(spec, end - begin, isa, 1, decaying);
      for (std::uint64_t step = 1; step <= 5; ++step) {
        const AlignedVector gradient = made_up_numbers(size, 10 + step);
        optimizer.apply(parameters.span().subspan(begin, end - begin),
                        gradient.span().subspan(begin, end - begin), 1.0F / 3.0F, step);
      }
      begin = end;
    }
    return bits_of(parameters.span());
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, OptimizerOf, testing::ValuesIn(kEveryIsa), isa_test_name);

// By hand: 1 - 0.1 * 2 = 0.8; 0.8 - 0.1 * -1 = 0.9.
TEST_P(OptimizerOf, SgdStepsAgainstTheGradient) {
  EXPECT_FLOAT_EQ(follow({.kind = OptimizerKind::kSgd, .learning_rate = 0.1F}, {2, -1}), 0.9F);
}

// By hand: m = 2, w = 0.8; m = 0.5 * 2 - 1 = 0, w = 0.8; m = 4, w = 0.4.
TEST_P(OptimizerOf, MomentumRemembersAShareOfEarlierGradients) {
  EXPECT_FLOAT_EQ(
      follow({.kind = OptimizerKind::kMomentum, .learning_rate = 0.1F, .momentum = 0.5F},
             {2, -1, 4}),
      0.4F);
}

// By hand: a = 0.1 + 4, w = 1 - 0.2 / sqrt(4.1) = 0.9012270; a = 5.1, w += 0.1 / sqrt(5.1).
TEST_P(OptimizerOf, AdagradDividesByTheRootOfTheSumOfSquares) {
  EXPECT_NEAR(follow({.kind = OptimizerKind::kAdagrad, .learning_rate = 0.1F}, {2, -1}),
              1 - 0.2 / std::sqrt(4.1) + 0.1 / std::sqrt(5.1), 1e-6);
}

// The parameter that started at 1, by the formula in double with the powers multiplied out. `decay`
// applies to the weight, not to the input of adam's step.
double adam_by_hand(const std::vector<float>& gradients, double decay) {
  double m = 0;
  double v = 0;
  double w = 1;
  double power1 = 1;
  double power2 = 1;
  for (const float gradient : gradients) {
    const double g = gradient;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    power1 *= 0.9;
    power2 *= 0.999;
    const double step = std::sqrt(1 - power2) / (1 - power1) * m / (std::sqrt(v) + 1e-8);
    w -= 0.01 * (step + decay * w);
  }
  return w;
}

TEST_P(OptimizerOf, AdamFollowsItsFormula) {
  const std::vector<float> gradients = {2, -1, 0.5F, 3};
  const double w = adam_by_hand(gradients, 0);
  EXPECT_NEAR(follow({.kind = OptimizerKind::kAdam, .learning_rate = 0.01F}, gradients), w, 1e-6);
}

// The first step of adam equals the learning rate, for any size of the gradient.
TEST_P(OptimizerOf, AdamsFirstStepIsTheLearningRate) {
  const OptimizerSpec spec{.kind = OptimizerKind::kAdam, .learning_rate = 0.01F};
  EXPECT_NEAR(follow(spec, {1000}), 0.99F, 1e-6);
  EXPECT_NEAR(follow(spec, {-0.01F}), 1.01F, 1e-6);
}

TEST_P(OptimizerOf, AdamStaysFiniteAtAStepOfBillions) {
  Optimizer optimizer({}, 1, isa());
  std::vector<float> parameter = {1.0F};
  optimizer.apply(parameter, std::vector<float>{1.0F}, 1.0F, std::uint64_t{1} << 40U);
  EXPECT_TRUE(std::isfinite(parameter[0]));
}

TEST_P(OptimizerOf, EveryKindScalesTheGradientSumFirst) {
  for (const OptimizerKind kind : kEveryKind) {
    Optimizer whole({.kind = kind}, 1, isa());
    Optimizer scaled({.kind = kind}, 1, isa());
    std::vector<float> a = {1.0F};
    std::vector<float> b = {1.0F};
    whole.apply(a, std::vector<float>{0.5F}, 1.0F, 1);
    scaled.apply(b, std::vector<float>{2.0F}, 0.25F, 1);
    EXPECT_EQ(bits_of(a), bits_of(b)) << optimizer_name(kind);
    EXPECT_NE(a[0], 1.0F) << optimizer_name(kind);
  }
}

TEST_P(OptimizerOf, EveryKindMultipliesTheLearningRateByTheFactor) {
  for (const OptimizerKind kind : kEveryKind) {
    Optimizer half({.kind = kind, .learning_rate = 0.5F, .weight_decay = 0.25F}, 1, isa());
    Optimizer factor({.kind = kind, .learning_rate = 2.0F, .weight_decay = 0.25F}, 1, isa());
    std::vector<float> a = {1.0F};
    std::vector<float> b = {1.0F};
    half.apply(a, std::vector<float>{0.3F}, 1.0F, 1);
    factor.apply(b, std::vector<float>{0.3F}, 1.0F, 1, 0.25F);
    EXPECT_EQ(bits_of(a), bits_of(b)) << optimizer_name(kind);
  }
}

// This allows any number of parameter servers to share a vector: the pieces end in the middle of
// vector registers, and the last ones are shorter than a register.
TEST_P(OptimizerOf, EveryKindIsBitIdenticalHoweverTheVectorIsCut) {
  for (const OptimizerKind kind : kEveryKind) {
    const auto whole = after_steps(spec_of(kind), isa(), 1000, {});
    EXPECT_EQ(after_steps(spec_of(kind), isa(), 1000, {512}), whole) << optimizer_name(kind);
    EXPECT_EQ(after_steps(spec_of(kind), isa(), 1000, {1, 2, 5, 12, 29, 62, 127, 400, 999}), whole)
        << optimizer_name(kind);
  }
}

TEST_P(OptimizerOf, EveryKindHasTheBitsOfTheGenericSet) {
  for (const OptimizerKind kind : kEveryKind) {
    EXPECT_EQ(after_steps(spec_of(kind), isa(), 1003, {}),
              after_steps(spec_of(kind), Isa::kGeneric, 1003, {}))
        << optimizer_name(kind);
  }
}

// Long enough that several threads are used, and not a multiple of their parts.
TEST_P(OptimizerOf, EveryKindIsBitIdenticalForAnyNumberOfThreads) {
  constexpr std::size_t kSize = 200'003;
  const AlignedVector gradient = made_up_numbers(kSize, 2);
  const AlignedVector last = made_up_numbers(kSize, 3);
  for (const OptimizerKind kind : kEveryKind) {
    std::vector<std::uint32_t> one;
    for (const std::size_t threads : {1U, 2U, 5U}) {
      AlignedVector parameters = made_up_numbers(kSize, 1);
      Optimizer optimizer({.kind = kind, .weight_decay = 0.1F}, kSize, isa(), threads,
                          std::vector<Range>{{16, 50'000}, {100'001, 150'000}});
      for (const std::uint64_t step : {1U, 2U}) {
        optimizer.apply(parameters.span(), parameters.span(), gradient.span(), 0.5F, step, 1.0F,
                        last.span());
      }
      const std::vector<std::uint32_t> bits = bits_of(parameters.span());
      if (threads == 1) {
        one = bits;
      }
      EXPECT_EQ(bits, one) << optimizer_name(kind) << ", " << threads << " threads";
    }
  }
}

TEST_P(OptimizerOf, EveryKindAddsTheLastGradientOfASumItself) {
  constexpr std::size_t kSize = 37;
  const AlignedVector first = made_up_numbers(kSize, 1);
  const AlignedVector last = made_up_numbers(kSize, 2);
  AlignedVector sum(kSize);
  add(sum.span(), first.span(), last.span(), isa());
  for (const OptimizerKind kind : kEveryKind) {
    Optimizer whole({.kind = kind}, kSize, isa());
    Optimizer apart({.kind = kind}, kSize, isa());
    AlignedVector expected = made_up_numbers(kSize, 3);
    AlignedVector parameters = made_up_numbers(kSize, 3);
    for (const std::uint64_t step : {1U, 2U}) {
      whole.apply(expected.span(), sum.span(), 0.5F, step);
      apart.apply(parameters.span(), parameters.span(), first.span(), 0.5F, step, 1.0F,
                  last.span());
      EXPECT_EQ(bits_of(parameters.span()), bits_of(expected.span())) << optimizer_name(kind);
    }
  }
}

TEST_P(OptimizerOf, EveryKindKeepsPaddingZero) {
  for (const OptimizerKind kind : kEveryKind) {
    for (const float weight_decay : {0.0F, 0.1F}) {
      Optimizer optimizer({.kind = kind, .weight_decay = weight_decay}, 20, isa());
      std::vector<float> padding(20);
      for (std::uint64_t step = 1; step <= 3; ++step) {
        optimizer.apply(padding, std::vector<float>(20), 1.0F, step);
      }
      EXPECT_THAT(bits_of(padding), testing::Each(0U)) << optimizer_name(kind);
    }
  }
}

// ---- Weight decay ----

// A weight, a bias, a weight; none ends at the end of a vector register.
ParameterLayout made_up_layout() {
  ParameterLayout layout;
  layout.add("a_w", {7, 43});
  layout.add("a_b", {43}, /*decays=*/false);
  layout.add("b_w", {43, 13});
  layout.add("b_b", {13}, /*decays=*/false);
  return layout;
}

// By hand: g = 2 + 0.5 * 1, w = 1 - 0.1 * 2.5 = 0.75; g = -1 + 0.5 * 0.75, w = 0.75 + 0.0625.
TEST_P(OptimizerOf, WeightDecayIsAddedToTheGradient) {
  EXPECT_FLOAT_EQ(
      follow({.kind = OptimizerKind::kSgd, .learning_rate = 0.1F, .weight_decay = 0.5F}, {2, -1}),
      0.8125F);
}

TEST_P(OptimizerOf, WeightDecayGoesThroughTheMomentum) {
  const OptimizerSpec spec{.kind = OptimizerKind::kMomentum,
                           .learning_rate = 0.1F,
                           .momentum = 0.5F,
                           .weight_decay = 0.5F};
  // By hand: m = 2.5, w = 0.75; m = 1.25 - 1 + 0.375 = 0.625, w = 0.6875.
  EXPECT_FLOAT_EQ(follow(spec, {2, -1}), 0.6875F);
}

TEST_P(OptimizerOf, AdamwFollowsItsFormula) {
  const std::vector<float> gradients = {2, -1, 0.5F, 3};
  const double w = adam_by_hand(gradients, 0.25);
  EXPECT_NEAR(follow(spec_of(OptimizerKind::kAdamw, 0.25F), gradients), w, 1e-6);
}

TEST_P(OptimizerOf, AdamwWithoutWeightDecayIsAdam) {
  EXPECT_EQ(after_steps(spec_of(OptimizerKind::kAdamw), isa(), 100, {}),
            after_steps(spec_of(OptimizerKind::kAdam), isa(), 100, {}));
}

// Without a gradient only the decay remains, so an unchanged element has not decayed.
TEST_P(OptimizerOf, WeightDecayIsOfWhatDecaysAlone) {
  const ParameterLayout layout = made_up_layout();
  for (const OptimizerKind kind : kEveryKind) {
    const AlignedVector before = made_up_numbers(layout.size(), 1);
    AlignedVector after = made_up_numbers(layout.size(), 1);
    Optimizer optimizer(spec_of(kind, 0.1F), layout.size(), isa(), 1,
                        layout.decaying({0, layout.size()}));
    optimizer.apply(after.span(), std::vector<float>(layout.size()), 1.0F, 1);
    for (const Variable& variable : layout.variables()) {
      for (std::size_t i = variable.offset; i < variable.offset + variable.size; ++i) {
        ASSERT_EQ(after.span()[i] != before.span()[i], variable.decays)
            << optimizer_name(kind) << ", " << variable.name << ", " << i;
      }
    }
  }
}

TEST_P(OptimizerOf, EveryKindDecaysBitIdenticallyHoweverTheVectorIsCut) {
  const ParameterLayout layout = made_up_layout();
  const std::size_t size = layout.size();
  for (const OptimizerKind kind : kEveryKind) {
    const OptimizerSpec spec = spec_of(kind, 0.1F);
    const auto whole = after_steps(spec, isa(), size, {}, layout);
    EXPECT_EQ(after_steps(spec, isa(), size, {310}, layout), whole) << optimizer_name(kind);
    EXPECT_EQ(after_steps(spec, isa(), size, {1, 2, 5, 300, 301, 304, 347, 352, 353, 900}, layout),
              whole)
        << optimizer_name(kind);
    EXPECT_EQ(after_steps(spec, Isa::kGeneric, size, {}, layout), whole) << optimizer_name(kind);
    EXPECT_NE(after_steps(spec, isa(), size, {}), whole) << optimizer_name(kind);
    EXPECT_NE(after_steps(spec_of(kind), isa(), size, {}, layout), whole) << optimizer_name(kind);
  }
}

// ---- Averages ----

// TensorFlow's formula in double: d is 2/11, 3/12 and 0.27, which is less than 4/13.
TEST_P(OptimizerOf, AveragesFollowTheirFormula) {
  Optimizer optimizer({.kind = OptimizerKind::kSgd, .learning_rate = 1.0F, .average_decay = 0.27F},
                      1, isa());
  std::vector<float> parameter = {8};
  optimizer.begin_average(parameter);
  double average = 8;
  double w = 8;
  for (const double decay : {2.0 / 11.0, 3.0 / 12.0, 0.27}) {
    w -= 2;
    average = decay * average + (1 - decay) * w;
    optimizer.apply(parameter, std::vector<float>{2}, 1.0F, static_cast<std::uint64_t>(4 - w / 2));
    EXPECT_NEAR(optimizer.average()[0], average, 1e-6);
    EXPECT_EQ(static_cast<double>(parameter[0]), w) << "the parameters go their own way";
  }
}

TEST_P(OptimizerOf, AveragesAreBitIdenticalHoweverTheVectorIsCut) {
  constexpr std::size_t kSize = 200'003;
  const AlignedVector gradient = made_up_numbers(kSize, 2);
  const auto averaged = [&](const std::vector<std::size_t>& ends, Isa isa, std::size_t threads) {
    std::vector<std::uint32_t> bits;
    AlignedVector parameters = made_up_numbers(kSize, 1);
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      const std::span<float> part = parameters.span().subspan(begin, end - begin);
      Optimizer optimizer({.average_decay = 0.9F}, part.size(), isa, threads);
      optimizer.begin_average(part);
      for (std::uint64_t step = 1; step <= 3; ++step) {
        optimizer.apply(part, gradient.span().subspan(begin, part.size()), 0.5F, step);
      }
      const auto next = bits_of(optimizer.average());
      bits.insert(bits.end(), next.begin(), next.end());
      begin = end;
    }
    return bits;
  };
  const auto whole = averaged({kSize}, isa(), 1);
  EXPECT_EQ(averaged({kSize}, Isa::kGeneric, 1), whole);
  EXPECT_EQ(averaged({kSize}, isa(), 5), whole);
  EXPECT_EQ(averaged({1, 512, 100'001, kSize}, isa(), 1), whole);
}

TEST_P(OptimizerOf, AveragesDoNotChangeTheParameters) {
  for (const OptimizerKind kind : kEveryKind) {
    OptimizerSpec spec = spec_of(kind, 0.1F);
    const auto without = after_steps(spec, isa(), 100, {});
    spec.average_decay = 0.9F;
    EXPECT_EQ(after_steps(spec, isa(), 100, {}), without) << optimizer_name(kind);
  }
}

TEST_P(OptimizerOf, EveryKindTakesAnEmptyRange) {
  for (const OptimizerKind kind : kEveryKind) {
    Optimizer optimizer({.kind = kind}, 0, isa());
    EXPECT_NO_FATAL_FAILURE(optimizer.apply({}, {}, 1.0F, 1));
  }
}

std::vector<std::string> state_names(OptimizerKind kind) {
  Optimizer optimizer({.kind = kind}, 4, Isa::kGeneric);
  std::vector<std::string> names;
  for (const StateTensor& tensor : optimizer.state()) {
    EXPECT_EQ(tensor.values.size(), 4U);
    names.emplace_back(tensor.name);
  }
  return names;
}

TEST(OptimizerState, HasTheNamesThatCheckpointsUse) {
  EXPECT_THAT(state_names(OptimizerKind::kSgd), testing::IsEmpty());
  EXPECT_THAT(state_names(OptimizerKind::kMomentum), testing::ElementsAre("momentum"));
  EXPECT_THAT(state_names(OptimizerKind::kAdagrad), testing::ElementsAre("accumulator"));
  EXPECT_THAT(state_names(OptimizerKind::kAdam), testing::ElementsAre("m", "v"));
  EXPECT_THAT(state_names(OptimizerKind::kAdamw), testing::ElementsAre("m", "v"));
}

TEST(OptimizerState, HasTheAverageAsItsLastTensor) {
  Optimizer adam({.kind = OptimizerKind::kAdam, .average_decay = 0.5F}, 4, Isa::kGeneric);
  EXPECT_EQ(adam.state().size(), 3U);
  EXPECT_EQ(adam.state().back().name, kAverageName);
  EXPECT_EQ(adam.state().back().values.data(), adam.average().data());
  Optimizer sgd({.kind = OptimizerKind::kSgd, .average_decay = 0.5F}, 4, Isa::kGeneric);
  EXPECT_EQ(sgd.state().size(), 1U);
}

TEST(OptimizerState, OfAdagradStartsAtATenth) {
  Optimizer optimizer({.kind = OptimizerKind::kAdagrad}, 4, Isa::kGeneric);
  EXPECT_THAT(optimizer.state()[0].values, testing::Each(0.1F));
}

// Save, load, step both: the copy stays bit-identical to the original.
TEST(OptimizerState, CopiedIntoAnotherContinuesBitIdentically) {
  for (const OptimizerKind kind : kEveryKind) {
    const OptimizerSpec spec{.kind = kind};
    Optimizer original(spec, 40, Isa::kGeneric);
    Optimizer restored(spec, 40, Isa::kGeneric);
    AlignedVector parameters = made_up_numbers(40, 1);
    original.apply(parameters.span(), made_up_numbers(40, 2).span(), 1.0F, 1);

    AlignedVector copy(40);
    std::ranges::copy(parameters.span(), copy.data());
    const auto from = original.state();
    const auto to = restored.state();
    for (std::size_t i = 0; i < from.size(); ++i) {
      std::ranges::copy(from[i].values, to[i].values.begin());
    }
    original.apply(parameters.span(), made_up_numbers(40, 3).span(), 1.0F, 2);
    restored.apply(copy.span(), made_up_numbers(40, 3).span(), 1.0F, 2);
    EXPECT_EQ(bits_of(copy.span()), bits_of(parameters.span())) << optimizer_name(kind);
  }
}

class Accumulate : public IsaTest {};
INSTANTIATE_TEST_SUITE_P(Isas, Accumulate, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(Accumulate, AddsElementByElement) {
  AlignedVector sum = made_up_numbers(37, 1);
  const AlignedVector before = made_up_numbers(37, 1);
  const AlignedVector addend = made_up_numbers(37, 2);
  add(sum.span(), sum.span(), addend.span(), isa());
  for (std::size_t i = 0; i < 37; ++i) {
    EXPECT_EQ(sum.data()[i], before.data()[i] + addend.data()[i]);
  }
}

}  // namespace
}  // namespace disttf::math
