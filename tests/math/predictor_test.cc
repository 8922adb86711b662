// The outputs of a trained model: bit-identical whatever other rows are in the batch, and equal to
// those of an evaluation.
#include "math/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "math/aligned.h"
#include "math/evaluation.h"
#include "math/kernels.h"
#include "math/model.h"
#include "math/model_spec.h"

namespace disttf::math {
namespace {

ModelSpec spec_of(ModelKind kind) { return {.kind = kind, .hidden = {37}}; }

std::vector<std::uint8_t> images_of(std::size_t rows, std::size_t inputs) {
  std::vector<std::uint8_t> images(rows * inputs);
  std::uint32_t state = 7;
  for (std::uint8_t& pixel : images) {
    state = state * 1664525U + 1013904223U;
    pixel = static_cast<std::uint8_t>(state >> 24U);
  }
  return images;
}

AlignedVector parameters_of(const ModelSpec& spec, Isa isa) {
  const Model model(spec, 4, isa);
  AlignedVector parameters(model.layout().size());
  model.initialize(3, parameters.span());
  return parameters;
}

class Predictors : public testing::TestWithParam<ModelKind> {};

TEST_P(Predictors, AnswersDoNotDependOnWhoElseIsAnswered) {
  const ModelSpec spec = spec_of(GetParam());
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(isa_name(isa));
    const AlignedVector parameters = parameters_of(spec, isa);
    constexpr std::size_t kImages = 11;
    const std::vector<std::uint8_t> images = images_of(kImages, spec.input.size());
    Predictor together(spec, parameters.span(), {}, 32, isa);
    std::vector<float> expected(kImages * together.outputs());
    together.predict(images, expected);
    for (const std::size_t max_rows : {1U, 6U, 64U}) {
      for (const std::size_t threads : {1U, 2U}) {
        Predictor other(spec, parameters.span(), {}, max_rows, isa, ComputeDtype::kF32, threads);
        for (const std::size_t batch : {1U, 2U, 5U, 11U}) {
          std::vector<float> outputs(expected.size());
          for (std::size_t begin = 0; begin < kImages; begin += batch) {
            const std::size_t rows = std::min(batch, kImages - begin);
            other.predict(
                std::span(images).subspan(begin * spec.input.size(), rows * spec.input.size()),
                std::span(outputs).subspan(begin * 10, rows * 10));
          }
          EXPECT_EQ(outputs, expected) << max_rows << " " << threads << " " << batch;
        }
      }
    }
  }
}

TEST_P(Predictors, JudgesAsAnEvaluationDoes) {
  const ModelSpec spec = spec_of(GetParam());
  const Isa isa = supported_isas().front();
  const AlignedVector parameters = parameters_of(spec, isa);
  constexpr std::size_t kImages = 50;
  const std::vector<std::uint8_t> images = images_of(kImages, spec.input.size());
  std::vector<std::uint8_t> labels(kImages);
  std::iota(labels.begin(), labels.end(), std::uint8_t{0});
  for (std::uint8_t& label : labels) {
    label = static_cast<std::uint8_t>(label % 10);
  }
  Model model(spec, 16, isa);
  const Evaluation evaluation =
      model.evaluate(parameters.span(), {.images = images, .labels = labels});
  Predictor predictor(spec, parameters.span(), {}, 16, isa);
  std::vector<float> outputs(kImages * 10);
  predictor.predict(images, outputs);
  for (std::size_t row = 0; row < kImages; ++row) {
    const auto probabilities = std::span(outputs).subspan(row * 10, 10);
    EXPECT_EQ(judged_class(probabilities), evaluation.answers[row]);
    EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), 1.0, 1e-6);
  }
}

TEST_P(Predictors, WholePixelsAsNumbersHaveTheBitsOfBytes) {
  const ModelSpec spec = spec_of(GetParam());
  const std::size_t inputs = spec.input.size();
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(isa_name(isa));
    const AlignedVector parameters = parameters_of(spec, isa);
    const std::vector<std::uint8_t> images = images_of(6, inputs);
    Predictor predictor(spec, parameters.span(), {}, 8, isa);
    std::vector<float> expected(60);
    predictor.predict(images, expected);
    std::vector<float> numbers(images.begin(), images.end());
    numbers[3 * inputs + 5] += 0.25F;  // only of the fourth image
    std::vector<float> outputs(60);
    predictor.predict_numbers(numbers, outputs);
    for (std::size_t row = 0; row < 6; ++row) {
      const auto row_of = [row](const std::vector<float>& all) {
        return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(row * 10),
                                  all.begin() + static_cast<std::ptrdiff_t>(row * 10 + 10));
      };
      if (row != 3) {
        EXPECT_EQ(row_of(outputs), row_of(expected)) << row;
      }
    }
    // The changed image has a similar result, and a bit-identical one if predicted alone.
    std::vector<float> alone(10);
    predictor.predict_numbers(std::span(numbers).subspan(3 * inputs, inputs), alone);
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(alone[i], outputs[30 + i]);
      EXPECT_NEAR(alone[i], expected[30 + i], 1e-3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Predictors,
                         testing::Values(ModelKind::kSoftmax, ModelKind::kMlp, ModelKind::kCnn),
                         [](const auto& kind) { return std::string(model_name(kind.param)); });

TEST(Predictor, TellsNumbersInTheirOwnUnit) {
  ModelSpec spec{.kind = ModelKind::kSoftmax,
                 .input = {.height = 1, .width = 1, .channels = 2},
                 .classes = 1,
                 .loss = LossKind::kMeanSquaredError,
                 .numbers = true};
  AlignedVector parameters(layout_of(spec).size());
  std::ranges::fill(parameters.span(), 0.0F);
  parameters.span()[0] = 2;  // the weights; the bias follows at the next multiple of 64 bytes
  parameters.span()[1] = 3;
  parameters.span()[kVariableAlignmentFloats] = 1;
  const std::vector<float> means = {10, 20};
  const std::vector<float> scales = {0.5F, 0.25F};
  Predictor predictor(spec, parameters.span(),
                      {.means = means, .scales = scales, .target_mean = 100, .target_scale = 0.5F},
                      4, Isa::kGeneric);
  std::vector<float> outputs(1);
  predictor.predict_numbers(std::vector<float>{12, 28}, outputs);
  // (2 * 1 + 3 * 2 + 1) / 0.5 + 100
  EXPECT_EQ(outputs.front(), 118.0F);
}

TEST(Predictor, SoftmaxOfLargeLogitsIsFinite) {
  std::vector<float> row = {1000, 999, -1000};
  loss_type(LossKind::kSoftmaxCrossEntropy).answer(row);
  EXPECT_NEAR(row[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(row[1], 1 - 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(row[2], 0);
}

TEST(Predictor, SigmoidTellsEachClassByItself) {
  std::vector<float> row = {0, 1000, -2};
  loss_type(LossKind::kSigmoidCrossEntropy).answer(row);
  EXPECT_EQ(row[0], 0.5F);
  EXPECT_EQ(row[1], 1.0F);
  EXPECT_NEAR(row[2], 1 / (1 + std::exp(2.0)), 1e-7);
}

// 10, 5 and 0 images per class; no image is classified as class 2.
const Evaluation kThree{
    .correct = 12, .rows = 16, .classes = 3, .confusion = {8, 2, 0, 1, 4, 0, 0, 0, 0}};

TEST(Evaluation, CountsByLabelAndByJudgement) {
  EXPECT_EQ(kThree.count(0, 1), 2U);
  EXPECT_EQ(kThree.of_class(0), 10U);
  EXPECT_EQ(kThree.judged_as(0), 9U);
  EXPECT_EQ(kThree.judged_as(1), 6U);
}

TEST(Evaluation, HasPrecisionOfWhatIsJudgedAndRecallOfWhatIs) {
  EXPECT_DOUBLE_EQ(kThree.precision(0), 8.0 / 9);
  EXPECT_DOUBLE_EQ(kThree.recall(0), 0.8);
  EXPECT_DOUBLE_EQ(kThree.precision(1), 4.0 / 6);
  EXPECT_DOUBLE_EQ(kThree.recall(1), 0.8);
  EXPECT_DOUBLE_EQ(kThree.accuracy(), 0.75) << "of all images, those of no class among them";
}

TEST(Evaluation, IsZeroWhereItWouldBeAShareOfNothing) {
  EXPECT_EQ(kThree.precision(2), 0);
  EXPECT_EQ(kThree.recall(2), 0);
  EXPECT_EQ(Evaluation{}.accuracy(), 0);
}

std::optional<double> area(std::vector<Margin> margins) { return area_under_curve(margins); }

TEST(AreaUnderCurve, IsTheShareOfPairsInOrder) {
  EXPECT_EQ(area({{1, true}, {0, false}}), 1.0);
  EXPECT_EQ(area({{0, true}, {1, false}}), 0.0);
  // The six pairs: 4 is above 3, 1 and 2, and 2 is above 1: four of them, plus a tie of 2 with 2.
  EXPECT_EQ(area({{4, true}, {2, true}, {3, false}, {1, false}, {2, false}}), 4.5 / 6);
}

TEST(AreaUnderCurve, IsAHalfWhereNothingIsTold) {
  EXPECT_EQ(area({{1, true}, {1, false}, {1, false}, {1, true}}), 0.5);
}

TEST(AreaUnderCurve, IsNoneWithoutPairsOrNumbers) {
  EXPECT_EQ(area({}), std::nullopt);
  EXPECT_EQ(area({{1, true}, {2, true}}), std::nullopt);
  EXPECT_EQ(area({{1, true}, {std::numeric_limits<double>::quiet_NaN(), false}}), std::nullopt);
}

}  // namespace
}  // namespace disttf::math
