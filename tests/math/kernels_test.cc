#include "math/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "math/aligned.h"
#include "math/kernels_table.h"
#include "math/names.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

TEST(Isa, NamesComeBack) {
  for (const Isa isa : kEveryIsa) {
    EXPECT_EQ(value_of<Isa>(kIsaNames, isa_name(isa)), isa);
  }
}

TEST(Isa, UnknownNameIsNone) {
  EXPECT_EQ(value_of<Isa>(kIsaNames, "avx"), std::nullopt);
  EXPECT_EQ(value_of<Isa>(kIsaNames, ""), std::nullopt);
}

TEST(Isa, GenericIsSupportedEverywhereAndNeverPreferred) {
  ASSERT_FALSE(supported_isas().empty());
  EXPECT_EQ(supported_isas().back(), Isa::kGeneric);
}

class KernelsOf : public IsaTest {
 protected:
  [[nodiscard]] static const Kernels& table() { return kernels(isa()); }
};
INSTANTIATE_TEST_SUITE_P(Isas, KernelsOf, testing::ValuesIn(kEveryIsa), isa_test_name);

// ---- Products ----

enum class Form : std::uint8_t { kPlain, kFirstTransposed, kSecondTransposed };

// One element of op(A) op(B) by the formula, in double.
double product_element(Form form, const AlignedVector& a, const AlignedVector& b,
                       const ProductShape& shape, std::size_t i, std::size_t j) {
  const bool a_down = form == Form::kFirstTransposed;
  const bool b_along = form == Form::kSecondTransposed;
  const float* in_a = a.data() + (a_down ? i : i * shape.depth);
  const float* in_b = b.data() + (b_along ? j * shape.depth : j);
  const std::size_t stride_a = a_down ? shape.rows : 1;
  const std::size_t stride_b = b_along ? 1 : shape.columns;
  double sum = 0;
  for (std::size_t k = 0; k < shape.depth; ++k) {
    sum += static_cast<double>(in_a[k * stride_a]) * static_cast<double>(in_b[k * stride_b]);
  }
  return sum;
}

class Products : public KernelsOf {
 protected:
  // C is filled with NaN before. Tolerance: each of `depth` additions of numbers below 1 rounds by
  // at most 2^-24 of the running sum; the sums stay near sqrt(depth), so depth * 1e-7 is a safe
  // bound.
  static void expect_product(Form form, ProductShape shape) {
    const AlignedVector a = made_up_numbers(shape.rows * shape.depth, 1);
    const AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
    AlignedVector c(shape.rows * shape.columns);
    std::ranges::fill(c.span(), std::numeric_limits<float>::quiet_NaN());
    AlignedVector scratch(kProductScratchFloats);
    multiply(form, a, b, c, shape, scratch);
    const AlignedVector start = start_of(shape);
    const double tolerance = 1e-6 + 1e-7 * static_cast<double>(shape.depth);
    for (std::size_t i = 0; i < shape.rows; ++i) {
      for (std::size_t j = 0; j < shape.columns; ++j) {
        const double from = form == Form::kPlain ? static_cast<double>(start.data()[j]) : 0.0;
        ASSERT_NEAR(c.data()[i * shape.columns + j],
                    from + product_element(form, a, b, shape, i, j), tolerance)
            << shape.rows << "x" << shape.depth << "x" << shape.columns << " at " << i << "," << j;
      }
    }
  }

  // The initial values of the rows of a plain product.
  static AlignedVector start_of(const ProductShape& shape) {
    return made_up_numbers(shape.columns, 4);
  }

  static void multiply(Form form, const AlignedVector& a, const AlignedVector& b, AlignedVector& c,
                       ProductShape shape, AlignedVector& scratch) {
    switch (form) {
      case Form::kPlain:
        table().f32.product(a.data(), b.data(), c.data(), shape, start_of(shape).data(),
                            scratch.data());
        break;
      case Form::kFirstTransposed:
        table().f32.product_at(a.data(), b.data(), c.data(), shape, scratch.data());
        break;
      case Form::kSecondTransposed:
        table().f32.product_bt(a.data(), b.data(), c.data(), shape, scratch.data());
        break;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, Products, testing::ValuesIn(kEveryIsa), isa_test_name);

// One less than, equal to and one more than every vector length and panel, and odd sizes.
constexpr std::size_t kSides[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15,
                                  16, 17, 23, 24, 25, 33, 47, 48, 49, 100};

TEST_P(Products, AreRightForEverySmallShape) {
  for (const std::size_t rows : kSides) {
    for (const std::size_t columns : kSides) {
      const ProductShape shape{
          .rows = rows, .columns = columns, .depth = (rows * columns) % 19 + 1};
      ASSERT_NO_FATAL_FAILURE(expect_product(Form::kPlain, shape));
      ASSERT_NO_FATAL_FAILURE(expect_product(Form::kFirstTransposed, shape));
      ASSERT_NO_FATAL_FAILURE(expect_product(Form::kSecondTransposed, shape));
    }
  }
}

TEST_P(Products, AreRightWhereEveryBlockBorderIsCrossed) {
  const ProductShape shape{.rows = 203, .columns = 485, .depth = 265};
  expect_product(Form::kPlain, shape);
  expect_product(Form::kFirstTransposed, shape);
  expect_product(Form::kSecondTransposed, shape);
}

TEST_P(Products, OfDepthZeroAreWhatTheyStartFrom) {
  const ProductShape shape{.rows = 3, .columns = 4, .depth = 0};
  expect_product(Form::kPlain, shape);
  expect_product(Form::kFirstTransposed, shape);
  expect_product(Form::kSecondTransposed, shape);
}

// The scratch memory of one product must not affect the next one.
TEST_P(Products, DoNotReadWhatTheScratchHeld) {
  const ProductShape shape{.rows = 101, .columns = 103, .depth = 271};
  const AlignedVector a = made_up_numbers(shape.rows * shape.depth, 1);
  const AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
  AlignedVector clean(shape.rows * shape.columns);
  AlignedVector dirty(shape.rows * shape.columns);
  AlignedVector scratch(kProductScratchFloats);
  for (const Form form : {Form::kPlain, Form::kFirstTransposed, Form::kSecondTransposed}) {
    multiply(form, a, b, clean, shape, scratch);
    std::ranges::fill(scratch.span(), std::numeric_limits<float>::quiet_NaN());
    multiply(form, a, b, dirty, shape, scratch);
    EXPECT_EQ(bits_of(clean.span()), bits_of(dirty.span()));
  }
}

// One chain of fused multiply-adds for each element, for any vector width.
TEST(Product, IsBitIdenticalOnAvx2AndAvx512) {
  const std::span<const Isa> isas = supported_isas();
  if (std::ranges::find(isas, Isa::kAvx512) == isas.end()) {
    GTEST_SKIP() << "this CPU lacks AVX-512";
  }
  const ProductShape shape{.rows = 101, .columns = 103, .depth = 271};
  const AlignedVector a = made_up_numbers(shape.rows * shape.depth, 1);
  const AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
  const AlignedVector start = made_up_numbers(shape.columns, 3);
  AlignedVector scratch(kProductScratchFloats);
  const auto bits_with = [&](Isa isa) {
    AlignedVector c(shape.rows * shape.columns);
    kernels(isa).f32.product(a.data(), b.data(), c.data(), shape, start.data(), scratch.data());
    return bits_of(c.span());
  };
  EXPECT_EQ(bits_with(Isa::kAvx2), bits_with(Isa::kAvx512));
}

// ---- Batch and layers ----

TEST_P(KernelsOf, PixelsBecomeParts255) {
  std::vector<std::uint8_t> pixels(256);
  for (std::size_t i = 0; i < 256; ++i) {
    pixels[i] = static_cast<std::uint8_t>(i);
  }
  std::vector<float> out(256);
  table().pixels_to_floats(pixels.data(), out.data(), 256);
  EXPECT_EQ(out[0], 0.0F);
  EXPECT_EQ(out[255], 1.0F);
  for (std::size_t i = 0; i < 256; ++i) {
    EXPECT_FLOAT_EQ(out[i], static_cast<float>(i) / 255.0F);
  }
}

TEST_P(KernelsOf, ColumnSumsAddRowsFromTheFirstToTheLast) {
  // 2^24 absorbs an added 1, so only this order gives these sums.
  const std::vector<float> matrix = {16777216.0F, 1.0F, 1.0F, 1.0F, 1.0F, 16777216.0F};
  std::vector<float> sums(2, 99.0F);
  table().column_sums(matrix.data(), sums.data(), 3, 2);
  EXPECT_EQ(sums[0], 16777216.0F);
  EXPECT_EQ(sums[1], 16777218.0F);
}

TEST_P(KernelsOf, ReluKeepsThePositiveAndNotANumber) {
  std::vector<float> values = {-2.0F, 0.0F, 3.0F, std::numeric_limits<float>::quiet_NaN()};
  table().relu(values.data(), values.size());
  EXPECT_EQ(values[0], 0.0F);
  EXPECT_EQ(values[1], 0.0F);
  EXPECT_EQ(values[2], 3.0F);
  EXPECT_TRUE(std::isnan(values[3]));
}

TEST_P(KernelsOf, ReluBackwardPassesWhereTheOutputWasPositive) {
  const std::vector<float> output = {0.0F, 2.0F, 0.0F, 1e-30F};
  std::vector<float> gradient = {5.0F, 6.0F, -7.0F, -8.0F};
  table().relu_backward(output.data(), gradient.data(), gradient.size());
  EXPECT_EQ(gradient, (std::vector<float>{0.0F, 6.0F, 0.0F, -8.0F}));
}

// ---- Tanh and sigmoid ----

// Numbers from -100 to 100, dense near 0, and values at the limits of float.
std::vector<float> arguments() {
  std::vector<float> all = {-0.0F, 0.0F, 1e-30F, -1e-30F, 3e38F, -3e38F, INFINITY, -INFINITY};
  for (int i = -10000; i <= 10000; ++i) {
    const float root = static_cast<float>(i) * 1e-3F;
    all.push_back(root < 0 ? -root * root : root * root);
  }
  return all;
}

TEST_P(KernelsOf, TanhIsTheLibrarysWithinTwoUnits) {
  const std::vector<float> from = arguments();
  std::vector<float> values = from;
  table().tanh(values.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = std::tanh(static_cast<double>(from[i]));
    ASSERT_NEAR(values[i], expected, 2 * 1.2e-7 * std::abs(expected)) << from[i];
  }
}

TEST_P(KernelsOf, SigmoidIsTheLibrarysWithinTwoUnits) {
  const std::vector<float> from = arguments();
  std::vector<float> values = from;
  table().sigmoid(values.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = std::max(static_cast<double>(from[i]), -87.0);
    const double expected = 1 / (1 + std::exp(-x));
    ASSERT_NEAR(values[i], expected, 2 * 1.2e-7 * expected) << from[i];
  }
}

TEST_P(KernelsOf, TanhAndSigmoidKeepNotANumber) {
  for (const auto function : {table().tanh, table().sigmoid}) {
    std::vector<float> values = {std::numeric_limits<float>::quiet_NaN(), 1.0F};
    function(values.data(), values.size());
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_FALSE(std::isnan(values[1]));
  }
}

TEST_P(KernelsOf, TanhAndSigmoidHaveTheBitsOfTheGenericSet) {
  const Kernels& generic = kernels(Isa::kGeneric);
  const std::vector<float> output = arguments();  // any values: only the bits count
  const auto bits_by = [&](auto function) {
    std::vector<float> values = arguments();
    function(values);
    return bits_of(values);
  };
  for (const auto function : {&Kernels::tanh, &Kernels::sigmoid}) {
    const auto on = [&](const Kernels& set) {
      return bits_by([&](auto& values) { (set.*function)(values.data(), values.size()); });
    };
    EXPECT_EQ(on(table()), on(generic));
  }
  for (const auto function : {&Kernels::tanh_backward, &Kernels::sigmoid_backward}) {
    const auto on = [&](const Kernels& set) {
      return bits_by(
          [&](auto& values) { (set.*function)(output.data(), values.data(), values.size()); });
    };
    EXPECT_EQ(on(table()), on(generic));
  }
}

// ---- Softmax and cross-entropy ----

class SoftmaxCrossEntropy : public KernelsOf {
 protected:
  // Returns the loss of one image; `logits` receives the gradient.
  static double run(std::vector<float>& logits, std::uint8_t label, float scale = 1.0F,
                    float smoothing = 0.0F) {
    return table().softmax_cross_entropy(logits.data(), &label, 1, logits.size(), scale, smoothing);
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, SoftmaxCrossEntropy, testing::ValuesIn(kEveryIsa), isa_test_name);

// By hand: exp(log 1), exp(log 2), exp(log 5) are 1, 2, 5 of 8; the label's share is 2/8.
TEST_P(SoftmaxCrossEntropy, MatchesACaseWorkedByHand) {
  std::vector<float> logits = {0.0F, 0.69314718F, 1.60943791F};
  EXPECT_NEAR(run(logits, 1, 2.0F), std::log(4.0), 1e-6);
  EXPECT_NEAR(logits[0], 2.0 * 0.125, 1e-6);
  EXPECT_NEAR(logits[1], 2.0 * (0.25 - 1.0), 1e-6);
  EXPECT_NEAR(logits[2], 2.0 * 0.625, 1e-6);
}

// As above; a fifth of the target is spread over all classes: (1, 13, 1) / 15.
TEST_P(SoftmaxCrossEntropy, WithSmoothingMatchesACaseWorkedByHand) {
  std::vector<float> logits = {0.0F, 0.69314718F, 1.60943791F};
  EXPECT_NEAR(run(logits, 1, 2.0F, 0.2F), std::log(8.0) - (13 * std::log(2.0) + std::log(5.0)) / 15,
              1e-6);
  EXPECT_NEAR(logits[0], 2.0 * (0.125 - 1.0 / 15), 1e-6);
  EXPECT_NEAR(logits[1], 2.0 * (0.25 - 13.0 / 15), 1e-6);
  EXPECT_NEAR(logits[2], 2.0 * (0.625 - 1.0 / 15), 1e-6);
}

// The kernel's own exp and log against the C library's, over the whole relevant range.
TEST_P(SoftmaxCrossEntropy, FollowsTheLibrarysExpAndLog) {
  for (int i = 0; i <= 8700; ++i) {
    const float distance = static_cast<float>(i) * 0.01F;
    std::vector<float> logits = {-distance, 0.0F};
    const double small = std::exp(-static_cast<double>(distance));
    ASSERT_NEAR(run(logits, 1), std::log1p(small), 2e-7) << "at distance " << distance;
    ASSERT_NEAR(logits[0], small / (1 + small), 4e-7 * small) << "at distance " << distance;
  }
}

// Sums of up to 256 terms, on both sides of every power of two that they pass.
TEST_P(SoftmaxCrossEntropy, OfManyEqualClassesIsTheirLogarithm) {
  for (std::size_t classes = 2; classes <= 256; ++classes) {
    std::vector<float> logits(classes, -1.0F);
    ASSERT_NEAR(run(logits, 0), std::log(static_cast<double>(classes)), 1e-14) << classes;
  }
}

TEST_P(SoftmaxCrossEntropy, IsFiniteForTheLargestLogits) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  std::vector<float> logits = {kHuge, -kHuge, 0.0F, 88.0F};
  const double loss = run(logits, 1);
  EXPECT_DOUBLE_EQ(loss, 2.0 * static_cast<double>(kHuge));
  EXPECT_EQ(logits[0], 1.0F);
  EXPECT_EQ(logits[1], -1.0F);
  EXPECT_NEAR(logits[2], 0.0F, 1e-37);
}

TEST_P(SoftmaxCrossEntropy, WithSmoothingIsFiniteForTheLargestLogits) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  std::vector<float> logits = {kHuge, -kHuge};
  EXPECT_DOUBLE_EQ(run(logits, 1, 1.0F, 0.5F), 1.5 * static_cast<double>(kHuge));
  EXPECT_EQ(logits[0], 0.75F);
  EXPECT_EQ(logits[1], -0.75F);
}

TEST_P(SoftmaxCrossEntropy, LetsNotANumberThrough) {
  std::vector<float> logits = {0.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F};
  EXPECT_TRUE(std::isnan(run(logits, 0)));
  EXPECT_TRUE(std::isnan(logits[0]));
}

TEST_P(SoftmaxCrossEntropy, TakesEachRowByItself) {
  std::vector<float> both = {1.0F, 2.0F, 3.0F, -400.0F, 0.0F, 500.0F};
  const std::vector<std::uint8_t> labels = {0, 2};
  std::vector<float> first(both.begin(), both.begin() + 3);
  std::vector<float> second(both.begin() + 3, both.end());
  const double sum = table().softmax_cross_entropy(both.data(), labels.data(), 2, 3, 1.0F, 0.0F);
  EXPECT_DOUBLE_EQ(sum, run(first, 0) + run(second, 2));
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_EQ(bits_of(both), bits_of(first));
}

class SigmoidCrossEntropy : public KernelsOf {
 protected:
  static double run(std::vector<float>& logits, std::uint8_t label, float scale = 1.0F,
                    float smoothing = 0.0F) {
    return table().sigmoid_cross_entropy(logits.data(), &label, 1, logits.size(), scale, smoothing);
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, SigmoidCrossEntropy, testing::ValuesIn(kEveryIsa), isa_test_name);

// By hand: the logits log 3 and 0 give the probabilities 3/4 and 1/2.
TEST_P(SigmoidCrossEntropy, MatchesACaseWorkedByHand) {
  std::vector<float> logits = {1.09861229F, 0.0F};
  EXPECT_NEAR(run(logits, 0, 2.0F), -(std::log(0.75) + std::log(0.5)) / 2, 1e-6);
  EXPECT_NEAR(logits[0], 2.0 * (0.75 - 1) / 2, 1e-6);
  EXPECT_NEAR(logits[1], 2.0 * 0.5 / 2, 1e-6);
}

// As above, with targets of 0.9 and 0.1.
TEST_P(SigmoidCrossEntropy, WithSmoothingMatchesACaseWorkedByHand) {
  std::vector<float> logits = {1.09861229F, 0.0F};
  EXPECT_NEAR(run(logits, 0, 1.0F, 0.2F),
              -(0.9 * std::log(0.75) + 0.1 * std::log(0.25) + std::log(0.5)) / 2, 1e-6);
  EXPECT_NEAR(logits[0], (0.75 - 0.9) / 2, 1e-6);
  EXPECT_NEAR(logits[1], (0.5 - 0.1) / 2, 1e-6);
}

TEST_P(SigmoidCrossEntropy, IsFiniteForTheLargestLogits) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  std::vector<float> logits = {kHuge, -kHuge};
  EXPECT_DOUBLE_EQ(run(logits, 1), static_cast<double>(kHuge));
  EXPECT_EQ(logits[0], 0.5F);
  EXPECT_EQ(logits[1], -0.5F);
}

TEST_P(SigmoidCrossEntropy, LetsNotANumberThrough) {
  std::vector<float> logits = {0.0F, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(run(logits, 0)));
  EXPECT_TRUE(std::isnan(logits[1]));
}

TEST_P(SigmoidCrossEntropy, HasTheBitsOfTheGenericSet) {
  const AlignedVector numbers = made_up_numbers(100 * 10, 4, 20.0F);
  const std::vector<std::uint8_t> labels(100, 7);
  std::vector<float> here(numbers.span().begin(), numbers.span().end());
  std::vector<float> generic = here;
  const auto on = [&](const Kernels& set, std::vector<float>& logits) {
    return set.sigmoid_cross_entropy(logits.data(), labels.data(), 100, 10, 0.01F, 0.1F);
  };
  EXPECT_EQ(on(table(), here), on(kernels(Isa::kGeneric), generic));
  EXPECT_EQ(bits_of(here), bits_of(generic));
}

TEST_P(SoftmaxCrossEntropy, HasTheBitsOfTheGenericSet) {
  const AlignedVector numbers = made_up_numbers(100 * 10, 4, 20.0F);
  std::vector<std::uint8_t> labels(100);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::uint8_t>(i % 10);
  }
  for (const float smoothing : {0.0F, 0.1F}) {
    std::vector<float> here(numbers.span().begin(), numbers.span().end());
    std::vector<float> generic = here;
    const auto on = [&](const Kernels& set, std::vector<float>& logits) {
      return set.softmax_cross_entropy(logits.data(), labels.data(), 100, 10, 0.01F, smoothing);
    };
    EXPECT_EQ(on(table(), here), on(kernels(Isa::kGeneric), generic));
    EXPECT_EQ(bits_of(here), bits_of(generic));
  }
}

}  // namespace
}  // namespace disttf::math
