// Products whose first operand is pixels: the bits of the products of floats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "math/aligned.h"
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
  static AlignedVector floats_of(const std::vector<std::uint8_t>& pixels) {
    AlignedVector floats(pixels.size());
    table().pixels_to_floats(pixels.data(), floats.data(), pixels.size());
    return floats;
  }
  // Neither is to reach the result.
  static void spoil(AlignedVector& values) {
    std::ranges::fill(values.span(), std::numeric_limits<float>::quiet_NaN());
  }

  static void expect_same_bits(ProductShape shape, bool has_start = true) {
    const auto pixels = made_up_pixels(shape.rows * shape.depth);
    const AlignedVector floats = floats_of(pixels);
    const AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
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
    // The same matrix as A^T of a product whose depth is as long as the rows were.
    const ProductShape other{.rows = shape.depth, .columns = shape.columns, .depth = shape.rows};
    expect_same_bits_transposed(other, pixels, floats);
  }

  // A lies as [depth, a_stride or rows].
  static void expect_same_bits_transposed(ProductShape shape,
                                          const std::vector<std::uint8_t>& pixels,
                                          const AlignedVector& floats, std::size_t first = 0) {
    const AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
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
            expect_same_bits({.rows = rows, .columns = columns, .depth = depth}));
      }
    }
  }
}

TEST_P(PixelProducts, HaveThemWhereEveryBlockBorderIsCrossed) {
  expect_same_bits({.rows = 1030, .columns = 20, .depth = 130});   // blocks of rows
  expect_same_bits({.rows = 131, .columns = 255, .depth = 784});   // the last not to be packed
  expect_same_bits({.rows = 131, .columns = 256, .depth = 50});    // the first to be
  expect_same_bits({.rows = 130, .columns = 1100, .depth = 100});  // several groups of strips
}

TEST_P(PixelProducts, MayStartFromNothing) {
  expect_same_bits({.rows = 9, .columns = 20, .depth = 200}, /*has_start=*/false);
}

TEST_P(PixelProducts, MayComputeSomeRowsOfATransposedMatrix) {
  const std::size_t inputs = 784;
  const std::size_t batch = 100;
  const auto pixels = made_up_pixels(inputs * batch);
  const AlignedVector floats = floats_of(pixels);
  for (const std::size_t first : {0U, 52U, 392U}) {
    expect_same_bits_transposed({.rows = 100, .columns = 100, .depth = batch, .a_stride = inputs},
                                pixels, floats, first);
  }
}

}  // namespace
}  // namespace disttf::math
