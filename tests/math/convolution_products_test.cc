// Convolutions as products of bfloat16: bit-identical to the definition in their header.
#include "math/convolution_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "math/aligned.h"
#include "math/denormals.h"
#include "math/kernels.h"
#include "tests/math/bf16_definition.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

ConvolutionShape shape_of(std::size_t side, std::size_t channels, std::size_t kernel,
                          std::size_t stride, std::size_t units) {
  const std::size_t outputs = (side - kernel) / stride + 1;
  return {.height = side,
          .width = side,
          .channels = channels,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .stride = stride,
          .out_height = outputs,
          .out_width = outputs,
          .units = units};
}

// The last one has three blocks: 14, 14 and 12 rows of its output.
const std::vector<ConvolutionShape> kConvolutions = {
    shape_of(5, 1, 3, 1, 2),  shape_of(9, 3, 3, 2, 17),  shape_of(12, 16, 5, 1, 33),
    shape_of(7, 2, 1, 1, 20), shape_of(10, 5, 4, 3, 10), shape_of(42, 50, 3, 1, 4)};

// The operands of one image.
struct Numbers {
  explicit Numbers(const ConvolutionShape& shape)
      : image(made_up_numbers(shape.height * shape.width * shape.channels, 1)),
        weights(made_up_numbers(depth(shape) * shape.units, 2)),
        start(made_up_numbers(shape.units, 3)),
        delta(made_up_numbers(shape.out_height * shape.out_width * shape.units, 4)) {}
  static std::size_t depth(const ConvolutionShape& shape) {
    return shape.kernel_height * shape.kernel_width * shape.channels;
  }
  AlignedVector image;
  AlignedVector weights;
  AlignedVector start;
  AlignedVector delta;
};

// The input of output (y, x) at position k of the kernel.
float seen(const AlignedVector& image, const ConvolutionShape& shape, std::size_t y, std::size_t x,
           std::size_t k) {
  const std::size_t channel = k % shape.channels;
  const std::size_t j = k / shape.channels % shape.kernel_width;
  const std::size_t i = k / shape.channels / shape.kernel_width;
  return image
      .data()[((y * shape.stride + i) * shape.width + x * shape.stride + j) * shape.channels +
              channel];
}

std::vector<float> output_by_definition(const Numbers& numbers, const ConvolutionShape& shape) {
  const AlignedVector image = rounded(numbers.image);
  const AlignedVector weights = rounded(numbers.weights);
  std::vector<float> output;
  for (std::size_t y = 0; y < shape.out_height; ++y) {
    for (std::size_t x = 0; x < shape.out_width; ++x) {
      for (std::size_t u = 0; u < shape.units; ++u) {
        output.push_back(
            sum_in_chains(numbers.start.data()[u], Numbers::depth(shape), [&](std::size_t k) {
              return std::pair(seen(image, shape, y, x, k), weights.data()[k * shape.units + u]);
            }));
      }
    }
  }
  return output;
}

std::vector<float> gradient_by_definition(const Numbers& numbers, const ConvolutionShape& shape,
                                          std::size_t block, float before) {
  const AlignedVector image = rounded(numbers.image);
  const AlignedVector delta = rounded(numbers.delta);
  std::vector<float> gradient(Numbers::depth(shape) * shape.units, before);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const std::size_t k = i / shape.units;
    const std::size_t u = i % shape.units;
    for (std::size_t first = 0; first < shape.out_height; first += block) {
      const std::size_t rows = std::min(block, shape.out_height - first);
      gradient[i] += sum_in_chains(0.0F, rows * shape.out_width, [&](std::size_t position) {
        const std::size_t y = first + position / shape.out_width;
        const std::size_t x = position % shape.out_width;
        return std::pair(seen(image, shape, y, x, k),
                         delta.data()[(y * shape.out_width + x) * shape.units + u]);
      });
    }
  }
  return gradient;
}

class ConvolutionProducts : public IsaTest {
 protected:
  void SetUp() override {
    IsaTest::SetUp();
    if (IsSkipped()) return;
    if (!can_multiply(isa(), ComputeDtype::kBf16)) {
      GTEST_SKIP() << isa_name(isa()) << " has no products of bfloat16";
    }
    products_ = &products(isa(), ComputeDtype::kBf16);
    flush_denormals();
  }
  static AlignedVector not_numbers(std::size_t size) {
    AlignedVector values(size);
    std::ranges::fill(values.span(), std::numeric_limits<float>::quiet_NaN());
    return values;
  }
  const Products* products_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(All, ConvolutionProducts, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(ConvolutionProducts, OutputsAreWhatTheDefinitionSays) {
  for (const ConvolutionShape& shape : kConvolutions) {
    const Numbers numbers(shape);
    AlignedVector output = not_numbers(numbers.delta.size());
    AlignedVector scratch = not_numbers(convolution_scratch_floats(shape));
    convolve(*products_, numbers.image.data(), numbers.weights.data(), numbers.start.data(),
             output.data(), shape, scratch.data());
    EXPECT_EQ(bits_of(output.span()), bits_of(output_by_definition(numbers, shape)))
        << shape.height << "x" << shape.channels << ", " << shape.units << " units";
  }
}

TEST_P(ConvolutionProducts, GradientsAreWhatTheDefinitionSays) {
  for (const ConvolutionShape& shape : kConvolutions) {
    const Numbers numbers(shape);
    AlignedVector scratch = not_numbers(convolution_scratch_floats(shape));
    AlignedVector gradient(numbers.weights.size());
    std::ranges::fill(gradient.span(), 0.25F);
    // In two parts, as two threads would compute it.
    const std::size_t rows = Numbers::depth(shape);
    for (const auto& [begin, end] :
         {std::pair(std::size_t{0}, rows / 3), std::pair(rows / 3, rows)}) {
      convolve_gradient(*products_, numbers.image.data(), numbers.delta.data(), gradient.data(),
                        begin, end, shape, scratch.data());
    }
    const bool is_large = &shape == &kConvolutions.back();
    const std::size_t block = is_large ? 14 : shape.out_height;
    EXPECT_EQ(bits_of(gradient.span()),
              bits_of(gradient_by_definition(numbers, shape, block, 0.25F)))
        << shape.height << "x" << shape.channels << ", " << shape.units << " units";
  }
}

}  // namespace
}  // namespace disttf::math
