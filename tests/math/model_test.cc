#include "math/model.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "math/aligned.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"
#include "tests/math/reference_model.h"

namespace disttf::math {
namespace {

// ---- Initial values ----

class InitialValues : public testing::Test {
 protected:
  static AlignedVector of(const ModelSpec& spec, std::uint64_t seed) {
    const Model model(spec, 1, Isa::kGeneric);
    AlignedVector values = made_up_numbers(model.layout().size(), 1);  // to be overwritten
    model.initialize(seed, values.span());
    return values;
  }
};

TEST_F(InitialValues, OfSoftmaxAreZero) {
  const AlignedVector values = of(softmax(784, 10), 1);
  EXPECT_THAT(values.span(), testing::Each(0.0F));
}

// The moments of the normal distribution truncated at two deviations: the deviation is 0.8796, and
// 4.55 % of the full curve is cut off. With 78 400 draws the mean is within 0.02 and the deviation
// within 0.01 of the exact values (five standard errors), unless the generator is wrong.
TEST_F(InitialValues, OfWeightsFollowTheTruncatedNormalDistribution) {
  const AlignedVector values = of(mlp(784, {100}, 10), 42);
  double sum = 0;
  double squares = 0;
  double largest = 0;
  std::size_t within_one = 0;
  for (std::size_t i = 0; i < 78400; ++i) {
    const double z = 28.0 * static_cast<double>(values.data()[i]);
    sum += z;
    squares += z * z;
    largest = std::max(largest, std::abs(z));
    within_one += std::abs(z) < 1 ? 1U : 0U;
  }
  EXPECT_NEAR(sum / 78400, 0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / 78400), 0.8796, 0.01);
  EXPECT_LE(largest, 2.0 + 1e-6);
  EXPECT_GT(largest, 1.99);
  EXPECT_NEAR(static_cast<double>(within_one) / 78400, 0.68269 / 0.95450, 0.01);
}

TEST_F(InitialValues, OfLaterLayersHaveTheirOwnDeviation) {
  const ModelSpec spec = mlp(784, {400}, 100);
  const AlignedVector values = of(spec, 42);
  const ParameterLayout layout = layout_of(spec);
  const Variable& sm_w = layout.variables()[2];
  const auto weights = values.span().subspan(sm_w.offset, sm_w.size);
  EXPECT_LE(*std::ranges::max_element(weights), 2.0F / 20.0F + 1e-6F);
  EXPECT_GT(*std::ranges::max_element(weights), 1.99F / 20.0F);
}

TEST_F(InitialValues, OfBiasesAndPaddingAreZero) {
  const ModelSpec spec = mlp(5, {3}, 2);
  const AlignedVector values = of(spec, 42);
  const ParameterLayout layout = layout_of(spec);
  std::size_t nonzero = 0;
  for (const float value : values.span()) {
    nonzero += value != 0.0F ? 1U : 0U;
  }
  EXPECT_EQ(nonzero, layout.variables()[0].size + layout.variables()[2].size);
}

TEST_F(InitialValues, ComeBackForTheSameSeedAndDifferForAnother) {
  const ModelSpec spec = mlp(20, {10}, 5);
  EXPECT_EQ(bits_of(of(spec, 1).span()), bits_of(of(spec, 1).span()));
  EXPECT_NE(bits_of(of(spec, 1).span()), bits_of(of(spec, 2).span()));
}

// Pinned, because a restarted task must draw the same values as the lost one, even in another
// version. The numbers come from a second implementation in Python with its library's exp.
TEST_F(InitialValues, AreThoseOfEveryEarlierVersion) {
  const AlignedVector values = of(mlp(784, {100}, 10), 0);
  EXPECT_EQ(bits_of(values.span().first(4)),
            (std::vector<std::uint32_t>{0x3c1fd78d, 0x3d188917, 0x3ce69458, 0x3cd8796c}));
}

// ---- Gradient ----

class Gradient : public IsaTest {
 protected:
  struct Result {
    float loss = 0;
    AlignedVector values;
  };

  static Result of(const ModelSpec& spec, const AlignedVector& parameters, const ImageSet& set,
                   const std::vector<std::uint32_t>& rows, std::size_t max_batch = 0) {
    Model model(spec, std::max(max_batch, rows.size()), isa());
    // Not zero: gradient() must write every element.
    Result result{.values = made_up_numbers(model.layout().size(), 3)};
    result.loss = model.gradient(parameters.span(), set, rows, result.values.span());
    return result;
  }

  // Compares with the double reference, whose gradients have the magnitude `largest`. A float sum
  // of a few hundred terms is accurate to about 1e-6 of that.
  static void expect_reference(const ModelSpec& spec, std::size_t batch) {
    const MadeUpImages images(batch + 5, spec.input.size(), spec.classes);
    const AlignedVector parameters = made_up_parameters(layout_of(spec), 0.2F);
    const std::vector<std::uint32_t> rows = row_numbers(3, batch);
    const Result result = of(spec, parameters, images.set(), rows);
    const std::vector<double> exact(parameters.span().begin(), parameters.span().end());
    const ReferenceModel reference(spec);
    EXPECT_NEAR(result.loss, reference.loss(exact, images.set(), rows), 1e-5);
    const std::vector<double> expected = reference.gradient(exact, images.set(), rows);
    const double largest = *std::ranges::max_element(expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(result.values.data()[i], expected[i], 1e-5 * largest) << "parameter " << i;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, Gradient, testing::ValuesIn(kEveryIsa), isa_test_name);

// Validates the reference itself: its backpropagation against central differences.
TEST(ReferenceModel, AgreesWithCentralDifferences) {
  for (const ModelSpec& spec : {softmax(6, 3), mlp(6, {5}, 3), mlp(6, {5, 4}, 3)}) {
    const MadeUpImages images(4, spec.input.size(), spec.classes);
    const AlignedVector start = made_up_parameters(layout_of(spec), 1.0F);
    const std::vector<double> parameters(start.span().begin(), start.span().end());
    const ReferenceModel reference(spec);
    const auto rows = row_numbers(0, 4);
    const auto gradient = reference.gradient(parameters, images.set(), rows);
    const ParameterLayout layout = layout_of(spec);
    for (const Variable& variable : layout.variables()) {
      for (std::size_t i = variable.offset; i < variable.offset + variable.size; ++i) {
        EXPECT_NEAR(gradient[i], reference.difference(parameters, i, images.set(), rows), 1e-8)
            << "parameter " << i;
      }
    }
  }
}

TEST_P(Gradient, OfSoftmaxIsTheReferences) {
  expect_reference(softmax(6, 3), 4);
  expect_reference(softmax(784, 10), 100);
}

TEST_P(Gradient, OfOneHiddenLayerIsTheReferences) {
  expect_reference(mlp(6, {5}, 3), 4);
  expect_reference(mlp(784, {100}, 10), 50);
}

TEST_P(Gradient, OfTwoHiddenLayersIsTheReferences) {
  expect_reference(mlp(6, {5, 4}, 3), 4);
  expect_reference(mlp(37, {33, 65}, 10), 23);
}

TEST_P(Gradient, OfThreeHiddenLayersIsTheReferences) { expect_reference(mlp(6, {5, 4, 7}, 3), 4); }

// By hand: one pixel of 255 (x = 1), two classes, all parameters zero: both probabilities are 1/2,
// the loss is log 2, and d loss / d logits = (1/2 - 1, 1/2) for label 0. Weights and biases get x
// times that.
TEST_P(Gradient, OfSoftmaxMatchesACaseWorkedByHand) {
  const std::vector<std::uint8_t> pixels = {255};
  const std::vector<std::uint8_t> labels = {0};
  const ModelSpec spec = softmax(1, 2);
  const AlignedVector zeros(layout_of(spec).size());
  const Result result = of(spec, zeros, {.images = pixels, .labels = labels}, {0});
  EXPECT_FLOAT_EQ(result.loss, 0.69314718F);
  const ParameterLayout layout = layout_of(spec);
  const float* weights = result.values.data() + layout.variables()[0].offset;
  const float* bias = result.values.data() + layout.variables()[1].offset;
  EXPECT_EQ((std::vector<float>{weights[0], weights[1]}), (std::vector<float>{-0.5F, 0.5F}));
  EXPECT_EQ((std::vector<float>{bias[0], bias[1]}), (std::vector<float>{-0.5F, 0.5F}));
}

// By hand: x = 1; hid_w = (2, -1), so h = relu(2, -1) = (2, 0); sm_w = ((1, 0), (5, 7)), so the
// logits are (2, 0). With the probability p = 1/(1 + e^-2) of class 0 and label 1, d logits = (p,
// -p). The gradient of sm_w is h times that: (2p, -2p), (0, 0). The gradient of h is d logits
// sm_w^T = (p, ...); the second unit is inactive. The gradient of hid_w and hid_b is (p, 0).
TEST_P(Gradient, OfAHiddenLayerMatchesACaseWorkedByHand) {
  const std::vector<std::uint8_t> pixels = {255};
  const std::vector<std::uint8_t> labels = {1};
  const ModelSpec spec = mlp(1, {2}, 2);
  const ParameterLayout layout = layout_of(spec);
  AlignedVector parameters(layout.size());
  std::ranges::copy(std::vector<float>{2, -1}, parameters.data() + layout.variables()[0].offset);
  std::ranges::copy(std::vector<float>{1, 0, 5, 7},
                    parameters.data() + layout.variables()[2].offset);
  const Result result = of(spec, parameters, {.images = pixels, .labels = labels}, {0});
  const float p = 0.88079708F;
  const std::vector<std::vector<float>> expected = {{p, 0}, {p, 0}, {2 * p, -2 * p, 0, 0}, {p, -p}};
  EXPECT_FLOAT_EQ(result.loss, 2.12692801F);  // 2 + log(1 + e^-2)
  for (std::size_t v = 0; v < expected.size(); ++v) {
    const float* values = result.values.data() + layout.variables()[v].offset;
    for (std::size_t i = 0; i < expected[v].size(); ++i) {
      EXPECT_NEAR(values[i], expected[v][i], 1e-6) << layout.variables()[v].name << " " << i;
    }
  }
}

// Operands lose at most 2^-9 of their value, in each of a few consecutive products. (The gradients
// of many images cancel each other but their rounding errors do not, hence one image.)
TEST_P(Gradient, WithProductsOfBfloat16IsNearTheOneWithout) {
  if (!can_multiply(isa(), ComputeDtype::kBf16)) {
    GTEST_SKIP() << isa_name(isa()) << " has no products of bfloat16";
  }
  const ModelSpec spec = mlp(784, {100, 40}, 10);
  const MadeUpImages images(1, spec.input.size(), spec.classes);
  const std::vector<std::uint32_t> rows = row_numbers(0, 1);
  Model f32(spec, 1, isa());
  Model bf16(spec, 1, isa(), ComputeDtype::kBf16);
  AlignedVector parameters(f32.layout().size());
  f32.initialize(1, parameters.span());
  AlignedVector expected(parameters.size());
  AlignedVector gradient(parameters.size());
  const float loss = f32.gradient(parameters.span(), images.set(), rows, expected.span());
  EXPECT_NEAR(bf16.gradient(parameters.span(), images.set(), rows, gradient.span()), loss,
              0.01F * loss);
  double distance = 0;
  double length = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = gradient.data()[i] - expected.data()[i];
    distance += difference * difference;
    length += static_cast<double>(expected.data()[i]) * expected.data()[i];
  }
  EXPECT_LT(std::sqrt(distance), 0.01 * std::sqrt(length));
  EXPECT_GT(std::sqrt(distance), 1e-5 * std::sqrt(length)) << "or nothing was rounded";
}

TEST_P(Gradient, IsZeroInThePadding) {
  const ModelSpec spec = mlp(5, {3}, 2);
  const MadeUpImages images(4, 5, 2);
  const ParameterLayout layout = layout_of(spec);
  Result result = of(spec, made_up_parameters(layout, 1.0F), images.set(), row_numbers(0, 4));
  for (const Variable& variable : layout.variables()) {
    std::fill_n(result.values.data() + variable.offset, variable.size, 0.0F);
  }
  EXPECT_THAT(bits_of(result.values.span()), testing::Each(0U));
}

TEST_P(Gradient, IsBitIdenticalWhenRepeated) {
  const ModelSpec spec = mlp(784, {100}, 10);
  const MadeUpImages images(100, 784, 10);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 0.1F);
  Model model(spec, 100, isa());
  AlignedVector first(model.layout().size());
  AlignedVector again(model.layout().size());
  const auto rows = row_numbers(0, 100);
  const float loss = model.gradient(parameters.span(), images.set(), rows, first.span());
  // A different batch in between: its leftovers must not matter.
  model.gradient(parameters.span(), images.set(), row_numbers(50, 40), again.span());
  EXPECT_EQ(model.gradient(parameters.span(), images.set(), rows, again.span()), loss);
  EXPECT_EQ(bits_of(first.span()), bits_of(again.span()));
}

TEST_P(Gradient, DoesNotDependOnMaxBatch) {
  const ModelSpec spec = mlp(784, {100}, 10);
  const MadeUpImages images(50, 784, 10);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 0.1F);
  const auto rows = row_numbers(0, 50);
  const Result exact = of(spec, parameters, images.set(), rows, 50);
  const Result roomy = of(spec, parameters, images.set(), rows, 501);
  EXPECT_EQ(bits_of(exact.values.span()), bits_of(roomy.values.span()));
}

// Row counts that fill whole panels of the products and others that do not; weights that are large
// enough to share among threads and others that are not.
TEST_P(Gradient, IsBitIdenticalForAnyNumberOfThreads) {
  const ModelSpec spec = mlp(784, {98, 17}, 10);
  const MadeUpImages images(101, 784, 10);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 0.3F);
  for (const ComputeDtype dtype : {ComputeDtype::kF32, ComputeDtype::kBf16}) {
    if (!can_multiply(isa(), dtype)) {
      continue;  // generic with bfloat16
    }
    for (const std::size_t rows : {101U, 100U, 3U}) {
      std::vector<std::uint32_t> one;
      for (const std::size_t threads : {1U, 2U, 3U, 7U}) {
        Model model(spec, 101, isa(), dtype, threads);
        AlignedVector gradient(model.layout().size());
        model.gradient(parameters.span(), images.set(), row_numbers(0, rows), gradient.span());
        const std::vector<std::uint32_t> bits = bits_of(gradient.span());
        if (threads == 1) {
          one = bits;
        }
        EXPECT_EQ(bits, one) << threads << " threads, " << rows << " rows";
      }
    }
  }
}

TEST_P(Gradient, IsFinalAsFarAsItSaysAndIsBitIdenticalInPieces) {
  const ModelSpec spec = mlp(784, {98, 17}, 10);
  const MadeUpImages images(33, 784, 10);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 0.3F);
  for (const std::size_t threads : {1U, 3U}) {
    Model model(spec, 33, isa(), ComputeDtype::kF32, threads);
    AlignedVector whole(model.layout().size());
    const float loss =
        model.gradient(parameters.span(), images.set(), row_numbers(0, 33), whole.span());
    AlignedVector gradient(model.layout().size());
    std::ranges::fill(gradient.span(), std::numeric_limits<float>::quiet_NaN());
    std::vector<std::size_t> told;
    model.load(images.set(), row_numbers(0, 33));
    const float same_loss = model.gradient_of_batch(
        parameters.span(), gradient.span(), [&](float loss_now, std::size_t ready) {
          EXPECT_EQ(loss_now, loss);
          EXPECT_EQ(bits_of(gradient.span().first(ready)), bits_of(whole.span().first(ready)));
          told.push_back(ready);
        });
    EXPECT_EQ(same_loss, loss);
    EXPECT_EQ(bits_of(gradient.span()), bits_of(whole.span()));
    EXPECT_EQ(told.size(), 3U) << "a piece fewer than there are";
    EXPECT_TRUE(std::ranges::is_sorted(told));
    EXPECT_LT(told.back(), 784U * 98U);
  }
}

TEST_P(Gradient, IsOfTheBatchThatWasLoadedWhateverIsExpectedNext) {
  const ModelSpec spec = mlp(784, {98}, 10);
  const MadeUpImages images(900, 784, 10);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 0.3F);
  Model model(spec, 33, isa());
  AlignedVector whole(model.layout().size());
  AlignedVector gradient(model.layout().size());
  model.load(images.set(), row_numbers(0, 33));
  model.gradient_of_batch(parameters.span(), whole.span());
  model.expect(images.set(), row_numbers(33, 33));
  model.expect(images.set(), row_numbers(0, 900));  // more than it needs
  model.gradient_of_batch(parameters.span(), gradient.span());
  EXPECT_EQ(bits_of(gradient.span()), bits_of(whole.span()));
}

TEST_P(Gradient, OfAFewWeightsIsOnePiece) {
  const ModelSpec spec = mlp(784, {10}, 10);
  const MadeUpImages images(5, 784, 10);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 0.3F);
  Model model(spec, 5, isa());
  AlignedVector gradient(model.layout().size());
  model.load(images.set(), row_numbers(0, 5));
  model.gradient_of_batch(parameters.span(), gradient.span(),
                          [](float, std::size_t ready) { ADD_FAILURE() << ready; });
}

// Two workers with half a batch each equal one with the whole batch, but not bit for bit: the sum
// over the rows is split, so its last bits change. 1e-6 of the largest element is ten times the
// observed difference.
TEST_P(Gradient, OfAWholeBatchIsTheMeanOfItsHalves) {
  const ModelSpec spec = mlp(784, {100}, 10);
  const MadeUpImages images(100, 784, 10);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 0.1F);
  const Result whole = of(spec, parameters, images.set(), row_numbers(0, 100));
  const Result first = of(spec, parameters, images.set(), row_numbers(0, 50));
  const Result second = of(spec, parameters, images.set(), row_numbers(50, 50));
  EXPECT_NEAR(whole.loss, (first.loss + second.loss) / 2, 1e-5);
  const float largest = *std::ranges::max_element(whole.values.span());
  for (std::size_t i = 0; i < whole.values.size(); ++i) {
    ASSERT_NEAR(whole.values.data()[i], (first.values.data()[i] + second.values.data()[i]) / 2,
                1e-6F * largest);
  }
}

TEST_P(Gradient, IsFiniteAtExtremeLogits) {
  const ModelSpec spec = mlp(6, {5}, 3);
  const MadeUpImages images(4, 6, 3);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 1e15F);
  const Result result = of(spec, parameters, images.set(), row_numbers(0, 4));
  EXPECT_TRUE(std::isfinite(result.loss));
  for (const float value : result.values.span()) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

// ---- Evaluation ----

class Evaluate : public IsaTest {};
INSTANTIATE_TEST_SUITE_P(Isas, Evaluate, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(Evaluate, HasTheReferencesCrossEntropyWhateverTheChunk) {
  const ModelSpec spec = mlp(20, {9}, 10);
  const MadeUpImages images(101, 20, 10);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 1.0F);
  const std::vector<double> exact(parameters.span().begin(), parameters.span().end());
  const double expected = ReferenceModel(spec).loss(exact, images.set(), row_numbers(0, 101));
  for (const std::size_t chunk : {1U, 7U, 101U, 500U}) {
    Model model(spec, chunk, isa());
    const Evaluation result = model.evaluate(parameters.span(), images.set());
    EXPECT_NEAR(result.loss, expected, 1e-5) << "chunks of " << chunk;
    EXPECT_EQ(result.rows, 101U);
  }
}

// Only the biases matter: class 2 always wins, so exactly its images are correct.
TEST_P(Evaluate, DoesNotDependOnTheNumberOfThreads) {
  const ModelSpec spec = mlp(30, {20}, 7);
  const MadeUpImages images(101, 30, 7);
  const AlignedVector parameters = made_up_parameters(layout_of(spec), 1.0F);
  const Evaluation one = Model(spec, 40, isa()).evaluate(parameters.span(), images.set());
  for (const std::size_t threads : {2U, 5U}) {
    Model model(spec, 40, isa(), ComputeDtype::kF32, threads);
    const Evaluation shared = model.evaluate(parameters.span(), images.set());
    EXPECT_EQ(shared.loss, one.loss);
    EXPECT_EQ(shared.correct, one.correct);
  }
}

TEST_P(Evaluate, CountsImagesWhoseLargestLogitIsTheirLabel) {
  const ModelSpec spec = softmax(4, 3);
  const ParameterLayout layout = layout_of(spec);
  AlignedVector parameters(layout.size());
  parameters.data()[layout.variables()[1].offset + 2] = 1.0F;
  const std::vector<std::uint8_t> pixels(5 * 4, 100);
  const std::vector<std::uint8_t> labels = {2, 0, 2, 1, 2};
  Model model(spec, 2, isa());
  const Evaluation result = model.evaluate(parameters.span(), {.images = pixels, .labels = labels});
  EXPECT_EQ(result.correct, 3U);
  EXPECT_DOUBLE_EQ(result.accuracy(), 0.6);
  EXPECT_EQ(result.confusion, (std::vector<std::uint64_t>{0, 0, 1, 0, 0, 1, 0, 0, 3}));
}

TEST_P(Evaluate, GivesATieToTheFirstClass) {
  const ModelSpec spec = softmax(4, 3);
  const AlignedVector zeros(layout_of(spec).size());
  const std::vector<std::uint8_t> pixels(3 * 4, 100);
  const std::vector<std::uint8_t> labels = {0, 1, 2};
  Model model(spec, 3, isa());
  EXPECT_EQ(model.evaluate(zeros.span(), {.images = pixels, .labels = labels}).correct, 1U);
}

TEST_P(Evaluate, NeverCountsNotANumberAsCorrect) {
  const ModelSpec spec = softmax(4, 3);
  AlignedVector parameters(layout_of(spec).size());
  std::ranges::fill(parameters.span(), std::numeric_limits<float>::quiet_NaN());
  const std::vector<std::uint8_t> pixels(3 * 4, 100);
  const std::vector<std::uint8_t> labels = {0, 1, 2};
  Model model(spec, 3, isa());
  const Evaluation result = model.evaluate(parameters.span(), {.images = pixels, .labels = labels});
  EXPECT_EQ(result.correct, 0U);
  EXPECT_THAT(result.confusion, testing::Each(0U)) << "judged to be of no class";
}

TEST_P(Evaluate, OfNoImagesIsZero) {
  Model model(softmax(4, 3), 3, isa());
  const AlignedVector parameters(model.layout().size());
  const Evaluation result = model.evaluate(parameters.span(), {});
  EXPECT_EQ(result.rows, 0U);
  EXPECT_EQ(result.loss, 0.0);
  EXPECT_EQ(result.accuracy(), 0.0);
}

// By hand: weight 2 and bias 1, inputs (10 - 4) * 0.5 = 3 and (0 - 4) * 0.5 = -2, so the outputs
// are 7 and -3. With the targets (t - 100) / 10 = 5 and -3 the errors are 2 and 0, which are 20 and
// 0 in their unit.
TEST(EvaluateNumbers, MatchesACaseWorkedByHand) {
  ModelSpec spec = softmax(1, 1);
  spec.loss = LossKind::kMeanSquaredError;
  spec.numbers = true;
  const ParameterLayout layout = layout_of(spec);
  AlignedVector parameters(layout.size());
  parameters.data()[layout.variables()[0].offset] = 2;
  parameters.data()[layout.variables()[1].offset] = 1;
  const std::vector<float> numbers = {10, 0};
  const std::vector<float> targets = {150, 70};
  const std::vector<float> means = {4};
  const std::vector<float> scales = {0.5F};
  Model model(spec, 2, Isa::kGeneric);
  const Evaluation result = model.evaluate(parameters.span(), {.numbers = numbers,
                                                               .means = means,
                                                               .scales = scales,
                                                               .targets = targets,
                                                               .target_mean = 100,
                                                               .target_scale = 0.1F});
  EXPECT_EQ(result.rows, 2U);
  EXPECT_EQ(result.classes, 0U);
  EXPECT_NEAR(result.loss, 2, 1e-5);
  EXPECT_NEAR(result.squared_error, 200, 1e-3);
  EXPECT_NEAR(result.absolute_error, 10, 1e-4);
}

}  // namespace
}  // namespace disttf::math
