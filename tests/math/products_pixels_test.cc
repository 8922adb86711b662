// Products with pixels as the first operand: bit-identical to the products of floats, whether most
// pixels are 0 or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "math/aligned.h"
#include "math/denormals.h"
#include "math/kernels.h"
#include "math/kernels_table.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

class PixelProducts : public IsaTest {
 protected:
  [[nodiscard]] static const Kernels& table() { return kernels(isa()); }

  void SetUp() override {
    IsaTest::SetUp();
    if (!IsSkipped() && table().f32.product_of_pixels == nullptr) {
      GTEST_SKIP() << "this instruction set keeps a batch as floats";
    }
  }

  static std::vector<std::uint8_t> made_up_pixels(std::size_t count) {
    std::vector<std::uint8_t> pixels(count);
    for (std::size_t i = 0; i < count; ++i) {
      pixels[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24U);
    }
    return pixels;
  }
  // Four fifths are 0, in runs. Some examples are all 0 and some have none, and the same holds for
  // positions.
  static std::vector<std::uint8_t> digits(std::size_t examples, std::size_t inputs) {
    std::vector<std::uint8_t> pixels = made_up_pixels(examples * inputs);
    for (std::size_t i = 0; i < examples; ++i) {
      for (std::size_t j = 0; j < inputs; ++j) {
        const std::size_t run = (i * 31 + j) / 5;
        const bool is_empty = i % 23 == 7 || j % 60 >= 50;
        const bool is_full = i % 29 == 11 || j % 90 == 40;
        const bool is_zero = is_empty || (!is_full && run * 2654435761U >> 8U & 7U);
        std::uint8_t& pixel = pixels[i * inputs + j];
        pixel = is_zero ? 0 : pixel | 1U;
      }
    }
    return pixels;
  }
  static AlignedVector floats_of(const std::vector<std::uint8_t>& pixels) {
    AlignedVector floats(pixels.size());
    table().pixels_to_floats(pixels.data(), floats.data(), pixels.size());
    return floats;
  }
  // NaN in every element, which must not reach the result.
  static void spoil(AlignedVector& values) {
    std::ranges::fill(values.span(), std::numeric_limits<float>::quiet_NaN());
  }

  static void expect_bit_identical(ProductShape shape, bool has_start = true) {
    const AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
    expect_bit_identical(shape, made_up_pixels(shape.rows * shape.depth), b, has_start);
    // The same matrix as A^T of a product whose depth is the number of rows.
    const ProductShape other{.rows = shape.depth, .columns = shape.columns, .depth = shape.rows};
    expect_bit_identical_transposed(other, made_up_pixels(shape.rows * shape.depth));
  }

  static void expect_bit_identical(ProductShape shape, const std::vector<std::uint8_t>& pixels,
                                   const AlignedVector& b, bool has_start = true) {
    const AlignedVector floats = floats_of(pixels);
    const AlignedVector start = made_up_numbers(shape.columns, 4);
    const float* from = has_start ? start.data() : nullptr;
    AlignedVector expected(shape.rows * shape.columns);
    AlignedVector c(shape.rows * shape.columns);
    AlignedVector scratch(kProductScratchFloats);
    table().f32.product(floats.data(), b.data(), expected.data(), shape, from, scratch.data());
    spoil(c);
    spoil(scratch);
    table().f32.product_of_pixels(pixels.data(), b.data(), c.data(), shape, from, scratch.data());
    EXPECT_EQ(bits_of(c.span()), bits_of(expected.span()))
        << shape.rows << "x" << shape.depth << "x" << shape.columns;
  }

  // A is stored as [depth, a_stride or rows].
  static void expect_bit_identical_transposed(ProductShape shape,
                                              const std::vector<std::uint8_t>& pixels,
                                              std::size_t first = 0) {
    expect_bit_identical_transposed(shape, pixels, made_up_numbers(shape.depth * shape.columns, 2),
                                    first);
  }
  static void expect_bit_identical_transposed(ProductShape shape,
                                              const std::vector<std::uint8_t>& pixels,
                                              const AlignedVector& b, std::size_t first = 0) {
    const AlignedVector floats = floats_of(pixels);
    AlignedVector expected(shape.rows * shape.columns);
    AlignedVector c(shape.rows * shape.columns);
    AlignedVector scratch(kProductScratchFloats);
    table().f32.product_at(floats.data() + first, b.data(), expected.data(), shape, scratch.data());
    spoil(c);
    spoil(scratch);
    table().f32.product_at_of_pixels(pixels.data() + first, b.data(), c.data(), shape,
                                     scratch.data());
    EXPECT_EQ(bits_of(c.span()), bits_of(expected.span()))
        << shape.rows << "x" << shape.depth << "x" << shape.columns << ", transposed";
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, PixelProducts, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(PixelProducts, HaveTheBitsOfFloatsForSmallAndRaggedShapes) {
  for (const std::size_t rows : {1U, 5U, 12U, 47U, 100U}) {
    for (const std::size_t columns : {1U, 10U, 16U, 33U, 100U}) {
      for (const std::size_t depth : {1U, 15U, 48U, 49U, 127U, 128U, 129U, 300U}) {
        ASSERT_NO_FATAL_FAILURE(
            expect_bit_identical({.rows = rows, .columns = columns, .depth = depth}));
      }
    }
  }
}

TEST_P(PixelProducts, HaveThemWhereEveryBlockBorderIsCrossed) {
  expect_bit_identical({.rows = 1030, .columns = 20, .depth = 130});   // blocks of rows
  expect_bit_identical({.rows = 131, .columns = 255, .depth = 784});   // not packed
  expect_bit_identical({.rows = 131, .columns = 256, .depth = 50});    // packed
  expect_bit_identical({.rows = 130, .columns = 1100, .depth = 100});  // several groups of strips
}

TEST_P(PixelProducts, MayStartFromNothing) {
  expect_bit_identical({.rows = 9, .columns = 20, .depth = 200}, /*has_start=*/false);
}

TEST_P(PixelProducts, MayComputeSomeRowsOfATransposedMatrix) {
  const std::size_t inputs = 784;
  const std::size_t batch = 100;
  for (const auto& pixels : {made_up_pixels(inputs * batch), digits(batch, inputs)}) {
    for (const std::size_t first : {0U, 52U, 392U}) {
      for (const std::size_t columns : {10U, 100U}) {
        expect_bit_identical_transposed(
            {.rows = 100, .columns = columns, .depth = batch, .a_stride = inputs}, pixels, first);
      }
    }
  }
}

// If most pixels are 0, the products skip them.

TEST_P(PixelProducts, HaveTheBitsOfFloatsWhereMostPixelsAreZero) {
  for (const std::size_t rows : {15U, 16U, 17U, 47U, 100U, 129U}) {
    for (const std::size_t columns : {1U, 10U, 17U, 33U, 49U, 100U, 113U}) {
      for (const std::size_t depth : {16U, 49U, 63U, 64U, 65U, 128U, 129U, 300U}) {
        const auto pixels = digits(rows, depth);
        const AlignedVector b = made_up_numbers(depth * columns, 2);
        ASSERT_NO_FATAL_FAILURE(
            expect_bit_identical({.rows = rows, .columns = columns, .depth = depth}, pixels, b));
        ASSERT_NO_FATAL_FAILURE(expect_bit_identical_transposed(
            {.rows = depth, .columns = columns, .depth = rows}, pixels));
      }
    }
  }
}

TEST_P(PixelProducts, HaveThemWhereMostAreZeroAndEveryBlockBorderIsCrossed) {
  for (const ProductShape shape : {ProductShape{.rows = 1030, .columns = 20, .depth = 130},
                                   ProductShape{.rows = 131, .columns = 256, .depth = 784},
                                   ProductShape{.rows = 130, .columns = 1100, .depth = 150}}) {
    const auto pixels = digits(shape.rows, shape.depth);
    expect_bit_identical(shape, pixels, made_up_numbers(shape.depth * shape.columns, 2));
    expect_bit_identical_transposed(
        {.rows = shape.depth, .columns = shape.columns, .depth = shape.rows}, pixels);
  }
}

// With so few columns the rows are in vector lanes, up to a depth of 4096; with more columns or
// depth they are not.
TEST_P(PixelProducts, HaveTheBitsOfFloatsHoweverFewColumnsThereAre) {
  for (std::size_t columns = 1; columns <= 18; ++columns) {
    const auto pixels = digits(50, 160);
    expect_bit_identical({.rows = 50, .columns = columns, .depth = 160}, pixels,
                         made_up_numbers(160 * columns, 2), /*has_start=*/columns % 2 == 0);
    expect_bit_identical_transposed({.rows = 160, .columns = columns, .depth = 50}, pixels);
  }
  for (const std::size_t depth : {4096U, 4112U}) {
    const auto pixels = digits(17, depth);
    expect_bit_identical({.rows = 17, .columns = 10, .depth = depth}, pixels,
                         made_up_numbers(depth * 10, 2));
    expect_bit_identical_transposed({.rows = 17, .columns = 10, .depth = depth}, digits(depth, 17));
  }
}

// 0 times infinity is NaN, and so is 0 times NaN.
TEST_P(PixelProducts, PassOverNothingBesideWhatIsNotFinite) {
  // Several pieces of the depth in both directions, the last with rows of B that are not whole
  // groups of four; at least two strips.
  constexpr std::size_t kRows = 133;
  constexpr std::size_t kDepth = 304;
  const auto pixels = digits(kRows, kDepth);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [columns, odd] :
       {std::pair(std::size_t{130}, kInfinity), std::pair(std::size_t{130}, -kInfinity),
        std::pair(std::size_t{130}, kNone), std::pair(std::size_t{9}, kInfinity),
        std::pair(std::size_t{9}, -kInfinity), std::pair(std::size_t{9}, kNone)}) {
    for (const std::size_t at :
         {std::size_t{0}, 71 * columns - 1, 130 * columns, (kRows - 1) * columns}) {
      SCOPED_TRACE(at);
      AlignedVector b = made_up_numbers(kDepth * columns, 2);
      b.data()[at] = odd;
      expect_bit_identical({.rows = kRows, .columns = columns, .depth = kDepth}, pixels, b);
      AlignedVector delta = made_up_numbers(kRows * columns, 2);
      delta.data()[at] = odd;
      expect_bit_identical_transposed({.rows = kDepth, .columns = columns, .depth = kRows}, pixels,
                                      delta);
    }
  }
}

TEST_P(PixelProducts, PassOverNothingBesideWhatIsNotFiniteInALaterGroupOfStrips) {
  constexpr ProductShape kShape{.rows = 300, .columns = 1100, .depth = 100};
  AlignedVector delta = made_up_numbers(kShape.depth * kShape.columns, 2);
  delta.data()[50 * kShape.columns + 1050] = std::numeric_limits<float>::infinity();
  expect_bit_identical_transposed(kShape, digits(kShape.depth, kShape.rows), delta);
}

TEST_P(PixelProducts, MayHaveNoColumns) {
  const auto pixels = digits(100, 100);
  const AlignedVector nothing(0);
  const ProductShape shape{.rows = 100, .columns = 0, .depth = 100};
  expect_bit_identical(shape, pixels, nothing);
  expect_bit_identical_transposed(shape, pixels, nothing);
}

// -0 and 0 have different bits. A sum of -0 becomes 0 at a step that adds 0, but stays -0 if that
// step is skipped.
class PixelProductsOfMinusZero : public PixelProducts {
 protected:
  static void expect_zeros(std::size_t columns);
};
INSTANTIATE_TEST_SUITE_P(Isas, PixelProductsOfMinusZero, testing::ValuesIn(kEveryIsa),
                         isa_test_name);

void PixelProductsOfMinusZero::expect_zeros(std::size_t columns) {
  constexpr std::size_t kRows = 100;
  constexpr std::size_t kDepth = 208;
  auto pixels = digits(kRows, kDepth);
  AlignedVector b(kDepth * columns);
  for (std::size_t k = 0; k < kDepth; ++k) {
    const bool is_blank = k % 10 == 0;  // not the last one, after which a sum would become 0 anyway
    for (std::size_t i = 0; i < kRows; ++i) {
      std::uint8_t& pixel = pixels[i * kDepth + k];
      pixel = is_blank ? 0 : std::min<std::uint8_t>(pixel, 200);
    }
    // The product with a number below 1 is denormal, so it becomes -0.
    std::ranges::fill(b.span().subspan(k * columns, columns), is_blank ? 1.0F : -1.2e-38F);
  }
  const ProductShape shape{.rows = kRows, .columns = columns, .depth = kDepth};
  AlignedVector start(columns);
  std::ranges::fill(start.span(), -0.0F);
  AlignedVector c(kRows * columns);
  AlignedVector scratch(kProductScratchFloats);
  const std::vector<std::uint32_t> zeros(c.size(), 0);
  table().f32.product_of_pixels(pixels.data(), b.data(), c.data(), shape, start.data(),
                                scratch.data());
  EXPECT_EQ(bits_of(c.span()), zeros);
  table().f32.product(floats_of(pixels).data(), b.data(), c.data(), shape, start.data(),
                      scratch.data());
  EXPECT_EQ(bits_of(c.span()), zeros);
}

TEST_P(PixelProductsOfMinusZero, AreZero) {
  const FlushedDenormals flushed;
  expect_zeros(/*columns=*/20);
  expect_zeros(/*columns=*/10);
}

// Max pooling compared with plain loops: channels that do and do not fill vectors of every length,
// equal numbers, infinities, NaN.

PoolingShape pooling_of(std::size_t channels, std::size_t size, std::size_t stride) {
  constexpr std::size_t kHeight = 7;
  constexpr std::size_t kWidth = 6;
  return {.height = kHeight,
          .width = kWidth,
          .channels = channels,
          .size = size,
          .stride = stride,
          .out_height = (kHeight - size) / stride + 1,
          .out_width = (kWidth - size) / stride + 1};
}

// Few different numbers, so that many are equal; every ninth is NaN or infinite.
AlignedVector image_of(const PoolingShape& shape) {
  AlignedVector image(shape.height * shape.width * shape.channels);
  for (std::size_t i = 0; i < image.size(); ++i) {
    image.data()[i] = std::floor(4.0F * made_up_number(5, i));
    if (i % 9 == 4) {
      image.data()[i] = std::numeric_limits<float>::quiet_NaN();
    } else if (i % 9 == 7) {
      image.data()[i] = (i % 2 == 0 ? 1.0F : -1.0F) * std::numeric_limits<float>::infinity();
    }
  }
  return image;
}

struct Pooled {
  std::vector<float> output;
  std::vector<float> chosen;
  std::vector<float> image;  // the positions that received `delta`
};

// One number at a time; element i of the output has delta i + 1.
Pooled by_definition(const AlignedVector& image, const PoolingShape& shape) {
  Pooled pooled{.output = {}, .chosen = {}, .image = std::vector<float>(image.size())};
  for (std::size_t y = 0; y < shape.out_height; ++y) {
    for (std::size_t x = 0; x < shape.out_width; ++x) {
      for (std::size_t c = 0; c < shape.channels; ++c) {
        const auto at = [&](std::size_t place) {
          const std::size_t row = y * shape.stride + place / shape.size;
          const std::size_t column = x * shape.stride + place % shape.size;
          return (row * shape.width + column) * shape.channels + c;
        };
        std::size_t best = 0;
        for (std::size_t place = 1; place < shape.size * shape.size; ++place) {
          const float value = image.data()[at(place)];
          if (std::isnan(value) || value > image.data()[at(best)]) {
            best = place;
          }
        }
        pooled.output.push_back(image.data()[at(best)]);
        pooled.chosen.push_back(static_cast<float>(best));
        pooled.image[at(best)] += static_cast<float>(pooled.output.size());
      }
    }
  }
  return pooled;
}

class MaxPool : public IsaTest {};
INSTANTIATE_TEST_SUITE_P(All, MaxPool, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(MaxPool, IsWhatTheDefinitionSaysForAnyNumberOfChannels) {
  for (const std::size_t channels : {1U, 3U, 4U, 7U, 8U, 12U, 16U, 31U, 40U}) {
    for (const PoolingShape& shape : {pooling_of(channels, 2, 2), pooling_of(channels, 3, 1)}) {
      const AlignedVector image = image_of(shape);
      const Pooled expected = by_definition(image, shape);
      const std::size_t outputs = expected.output.size();
      AlignedVector output(outputs);
      AlignedVector chosen(outputs);
      AlignedVector delta(outputs);
      for (std::size_t i = 0; i < outputs; ++i) {
        delta.data()[i] = static_cast<float>(i + 1);
      }
      AlignedVector back = made_up_numbers(image.size(), 6);  // all of it must be written
      kernels(isa()).max_pool(image.data(), output.data(), chosen.data(), shape);
      kernels(isa()).max_pool_backward(delta.data(), chosen.data(), back.data(), shape);
      EXPECT_EQ(bits_of(output.span()), bits_of(expected.output)) << channels;
      EXPECT_EQ(bits_of(chosen.span()), bits_of(expected.chosen)) << channels;
      EXPECT_EQ(bits_of(back.span()), bits_of(expected.image)) << channels;
    }
  }
}

}  // namespace
}  // namespace disttf::math
