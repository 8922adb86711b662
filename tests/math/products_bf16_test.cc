// Products of bfloat16: every implementation is bit-identical to the definition in kernels_table.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "math/aligned.h"
#include "math/convolution_products.h"
#include "math/denormals.h"
#include "math/kernels.h"
#include "math/kernels_table.h"
#include "math/names.h"
#include "math/products_trial.h"
#include "math/random.h"
#include "math/rounding.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

// Products of bfloat16 as math/kernels_table.h defines them, computed one number at a time.

AlignedVector rounded(const AlignedVector& from) {
  AlignedVector to(from.size());
  round_to_bf16(from.span(), to.span(), Isa::kGeneric);
  return to;
}

// Returns `start` plus the sums of the chains, added one after the other. factors(k): the pair of
// step k.
// REQUIRES: flush_denormals().
template <typename Factors>
float sum_in_chains(float start, std::size_t depth, const Factors& factors) {
  float sum = start;
  for (std::size_t first = 0; first < depth; first += kBf16Chain) {
    float chain = 0.0F;
    for (std::size_t k = first; k < std::min(first + kBf16Chain, depth); ++k) {
      const auto [a, b] = factors(k);
      chain = std::fma(a, b, chain);
    }
    sum += chain + 0.0F;
  }
  return sum;
}

enum class Way : std::uint8_t { kAvx2, kAvx512, kPairs, kTileUnit };

enum class Operand : std::uint8_t { kPlain, kFirstTransposed, kSecondTransposed };
constexpr Operand kOperands[] = {Operand::kPlain, Operand::kFirstTransposed,
                                 Operand::kSecondTransposed};

bool supports(Isa isa) {
  return std::ranges::find(supported_isas(), isa) != supported_isas().end();
}

// Returns null if this machine lacks that implementation.
const Products* products_of(Way way) {
  switch (way) {
    case Way::kAvx2:
      return supports(Isa::kAvx2) ? &kernels(Isa::kAvx2).bf16 : nullptr;
    case Way::kAvx512:
      return supports(Isa::kAvx512) ? &kernels(Isa::kAvx512).bf16 : nullptr;
    case Way::kPairs:
#if defined(__x86_64__)
      if (supports(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16")) {
        return &avx512_bf16::kProducts;
      }
#endif
      return nullptr;
    case Way::kTileUnit:
      return supports(Isa::kAvx512) && bf16_multiplier(Isa::kAvx512) == Bf16Multiplier::kTileUnit
                 ? &products(Isa::kAvx512, ComputeDtype::kBf16)
                 : nullptr;
  }
  return nullptr;
}

class Bf16Products : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    constexpr const char* kLacks[] = {"this machine, or this build, has no avx2",
                                      "this machine, or this build, has no avx512",
                                      "this machine, or this build, has no VDPBF16PS",
                                      "this machine has no tile unit, or does not let it be used"};
    products_ = products_of(GetParam());
    if (products_ == nullptr) {
      GTEST_SKIP() << kLacks[static_cast<std::size_t>(GetParam())];
    }
    flush_denormals();
  }

  AlignedVector multiply(Operand form, const AlignedVector& a, const AlignedVector& b,
                         ProductShape shape, const float* start = nullptr) {
    AlignedVector c(shape.rows * shape.columns);
    std::ranges::fill(c.span(), std::numeric_limits<float>::quiet_NaN());
    std::ranges::fill(scratch_.span(), std::numeric_limits<float>::quiet_NaN());
    switch (form) {
      case Operand::kPlain:
        products_->product(a.data(), b.data(), c.data(), shape, start, scratch_.data());
        break;
      case Operand::kFirstTransposed:
        products_->product_at(a.data(), b.data(), c.data(), shape, scratch_.data());
        break;
      case Operand::kSecondTransposed:
        products_->product_bt(a.data(), b.data(), c.data(), shape, scratch_.data());
        break;
    }
    return c;
  }

  const Products* products_ = nullptr;
  AlignedVector scratch_ = AlignedVector(kProductScratchFloats);
};
std::string way_name(const testing::TestParamInfo<Way>& way) {
  constexpr const char* kNames[] = {"Avx2", "Avx512", "Pairs", "TileUnit"};
  return kNames[static_cast<std::size_t>(way.param)];
}
INSTANTIATE_TEST_SUITE_P(Ways, Bf16Products,
                         testing::Values(Way::kAvx2, Way::kAvx512, Way::kPairs, Way::kTileUnit),
                         way_name);

// By the definition, one number at a time. REQUIRES: flush_denormals().
AlignedVector by_definition(Operand form, const AlignedVector& a_given,
                            const AlignedVector& b_given, ProductShape shape,
                            const float* start = nullptr) {
  const AlignedVector a = rounded(a_given);
  const AlignedVector b = rounded(b_given);
  AlignedVector c(shape.rows * shape.columns);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t j = 0; j < shape.columns; ++j) {
      const float sum =
          sum_in_chains(start == nullptr ? 0.0F : start[j], shape.depth, [&](std::size_t k) {
            const bool down = form == Operand::kFirstTransposed;
            const bool along = form == Operand::kSecondTransposed;
            return std::pair(a.data()[down ? k * shape.rows + i : i * shape.depth + k],
                             b.data()[along ? j * shape.depth + k : k * shape.columns + j]);
          });
      c.data()[i * shape.columns + j] = sum;
    }
  }
  return c;
}

// One less than, equal to and one more than tiles, vectors, chains and copy blocks.
constexpr ProductShape kShapes[] = {
    {.rows = 1, .columns = 1, .depth = 1},       {.rows = 1, .columns = 10, .depth = 15},
    {.rows = 2, .columns = 15, .depth = 16},     {.rows = 12, .columns = 16, .depth = 17},
    {.rows = 16, .columns = 17, .depth = 31},    {.rows = 17, .columns = 31, .depth = 32},
    {.rows = 31, .columns = 32, .depth = 33},    {.rows = 32, .columns = 33, .depth = 48},
    {.rows = 33, .columns = 63, .depth = 127},   {.rows = 100, .columns = 10, .depth = 100},
    {.rows = 47, .columns = 65, .depth = 129},   {.rows = 193, .columns = 35, .depth = 100},
    {.rows = 37, .columns = 129, .depth = 513},  {.rows = 259, .columns = 20, .depth = 545},
    {.rows = 1025, .columns = 7, .depth = 70},   {.rows = 0, .columns = 3, .depth = 4},
    {.rows = 2021, .columns = 33, .depth = 257}, {.rows = 3, .columns = 0, .depth = 4}};

TEST_P(Bf16Products, AreWhatTheDefinitionSays) {
  for (const ProductShape& shape : kShapes) {
    const AlignedVector a = made_up_numbers(shape.rows * shape.depth, 1);
    const AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
    const AlignedVector start = made_up_numbers(shape.columns, 3);
    for (const Operand form : kOperands) {
      const float* from = form == Operand::kPlain ? start.data() : nullptr;
      ASSERT_EQ(bits_of(multiply(form, a, b, shape, from).span()),
                bits_of(by_definition(form, a, b, shape, from).span()))
          << shape.rows << "x" << shape.depth << "x" << shape.columns << " form "
          << static_cast<int>(form);
    }
  }
}

// Numbers of any exponent in [least, least + span), some of them 0 or -0.
AlignedVector wild_numbers(std::size_t size, std::uint64_t stream, std::uint32_t least,
                           std::uint32_t span) {
  AlignedVector values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto bits = static_cast<std::uint32_t>(random_bits(7, kTestPurpose, stream, i) >> 16U);
    const std::uint32_t exponent = least + (bits >> 8U & 0xFFU) % span;
    const std::uint32_t magnitude =
        bits % 13 == 0 ? 0U : (exponent << 23U | (bits * 2654435761U >> 9U));
    values.data()[i] = std::bit_cast<float>((bits & 0x80000000U) | magnitude);
  }
  return values;
}

struct Exponents {
  std::uint32_t least_a, span_a, least_b, span_b;
};

// Near the smallest number, where products and sums underflow at different points; up to the
// largest, where a chain overflows; and far apart, where sums cancel.
TEST_P(Bf16Products, AreWhatTheDefinitionSaysOfNumbersThatAreHardToAdd) {
  const ProductShape shape{.rows = 61, .columns = 45, .depth = 83};
  for (const Exponents& e :
       {Exponents{56, 12, 56, 12}, Exponents{0, 20, 120, 10}, Exponents{0, 3, 1, 200},
        Exponents{100, 60, 90, 60}, Exponents{180, 70, 180, 12}, Exponents{127, 1, 1, 254}}) {
    const AlignedVector a = wild_numbers(shape.rows * shape.depth, 10, e.least_a, e.span_a);
    const AlignedVector b = wild_numbers(shape.depth * shape.columns, 11, e.least_b, e.span_b);
    const AlignedVector start = wild_numbers(shape.columns, 12, e.least_a, e.span_b);
    for (const Operand form : kOperands) {
      const float* from = form == Operand::kPlain ? start.data() : nullptr;
      ASSERT_EQ(bits_of(multiply(form, a, b, shape, from).span()),
                bits_of(by_definition(form, a, b, shape, from).span()))
          << "exponents from " << e.least_a << " and " << e.least_b;
    }
  }
}

// A negative sum that underflows is -0, and padding after the depth must not be added to it.
TEST_P(Bf16Products, EndWithTheDepth) {
  const ProductShape shape{.rows = 2, .columns = 2, .depth = 5};
  AlignedVector a(shape.rows * shape.depth);
  AlignedVector b(shape.depth * shape.columns);
  std::ranges::fill(b.span(), 1.25F);
  a.data()[0] = -std::numeric_limits<float>::min();
  AlignedVector start(shape.columns);
  std::ranges::fill(start.span(), std::numeric_limits<float>::min());
  const AlignedVector c = multiply(Operand::kPlain, a, b, shape, start.data());
  EXPECT_EQ(bits_of(c.span()),
            bits_of(by_definition(Operand::kPlain, a, b, shape, start.data()).span()));
  EXPECT_TRUE(c.data()[0] == 0.0F && std::signbit(c.data()[0])) << c.data()[0];
}

// A diverged run must not look healthy, and an infinity must not become NaN.
TEST_P(Bf16Products, TakeInfinityAndNotANumberForWhatTheyAre) {
  const ProductShape shape{.rows = 40, .columns = 50, .depth = 70};
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), 3.4e38F /* rounds up */}) {
    AlignedVector a = made_up_numbers(shape.rows * shape.depth, 1);
    AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
    b.data()[20 * shape.columns + 7] = bad;
    a.data()[3 * shape.depth + 69] = bad;
    const AlignedVector c = multiply(Operand::kPlain, a, b, shape);
    const AlignedVector expected = by_definition(Operand::kPlain, a, b, shape);
    for (std::size_t i = 0; i < c.size(); ++i) {
      const bool is_number = !std::isnan(expected.data()[i]);
      ASSERT_EQ(is_number, !std::isnan(c.data()[i])) << bad << " at " << i;
      ASSERT_TRUE(!is_number || c.data()[i] == expected.data()[i]) << bad << " at " << i;
    }
  }
}

TEST_P(Bf16Products, OfDepthZeroAreWhatTheyStartFrom) {
  const ProductShape shape{.rows = 3, .columns = 20, .depth = 0};
  const AlignedVector start = made_up_numbers(shape.columns, 3);
  const AlignedVector c = multiply(Operand::kPlain, {}, {}, shape, start.data());
  for (std::size_t i = 0; i < c.size(); ++i) {
    EXPECT_EQ(c.data()[i], start.data()[i % shape.columns]);
  }
}

// This lets several threads share the rows.
TEST_P(Bf16Products, GiveARowBitIdenticalResultsWhateverOtherRowsThereAre) {
  const ProductShape shape{.rows = 300, .columns = 40, .depth = 200};
  const AlignedVector a = made_up_numbers(shape.rows * shape.depth, 1);
  const AlignedVector b = made_up_numbers(shape.depth * shape.columns, 2);
  const AlignedVector whole = multiply(Operand::kPlain, a, b, shape);
  constexpr std::size_t kFirst = 77;
  AlignedVector part_of_a((shape.rows - kFirst) * shape.depth);
  std::copy(a.data() + kFirst * shape.depth, a.data() + a.size(), part_of_a.data());
  const ProductShape rest{
      .rows = shape.rows - kFirst, .columns = shape.columns, .depth = shape.depth};
  const AlignedVector part = multiply(Operand::kPlain, part_of_a, b, rest);
  EXPECT_EQ(bits_of(part.span()), bits_of(whole.span().subspan(kFirst * shape.columns)));
}

TEST(ProductsTrial, FindsABitThatIsAnother) {
  if (!supports(Isa::kAvx2)) {
    GTEST_SKIP() << "this machine, or this build, has no avx2";
  }
  const Products& right = kernels(Isa::kAvx2).bf16;
  EXPECT_TRUE(are_bit_identical(right, right));
  Products wrong = right;
  wrong.product_bt = [](const float* a, const float* b, float* c, ProductShape shape,
                        float* scratch) noexcept {
    kernels(Isa::kAvx2).bf16.product_bt(a, b, c, shape, scratch);
    c[shape.rows * shape.columns - 1] = std::nextafter(c[shape.rows * shape.columns - 1], 0.0F);
  };
  EXPECT_FALSE(are_bit_identical(right, wrong));
  EXPECT_FALSE(are_bit_identical(right, kernels(Isa::kAvx2).f32));
}

// Runs every available implementation, to show that the trial rejects none that is right.
TEST(ProductsTrial, TakesEveryWayToMultiply) {
  const Products* const first = products_of(Way::kAvx2);
  for (const Way way : {Way::kAvx512, Way::kPairs, Way::kTileUnit}) {
    if (const Products* const other = products_of(way); first != nullptr && other != nullptr) {
      EXPECT_TRUE(are_bit_identical(*first, *other)) << static_cast<int>(way);
    }
  }
}

TEST(ComputeDtype, NamesComeBack) {
  for (const ComputeDtype dtype : {ComputeDtype::kF32, ComputeDtype::kBf16}) {
    EXPECT_EQ(value_of<ComputeDtype>(kComputeDtypeNames, compute_dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(value_of<ComputeDtype>(kComputeDtypeNames, "bfloat16"), std::nullopt);
}

TEST(ComputeDtype, SaysWhatMultipliesBf16) {
  for (const Isa isa : supported_isas()) {
    if (!can_multiply(isa, ComputeDtype::kBf16)) {
      continue;
    }
    const bool by_floats = bf16_multiplier(isa) == Bf16Multiplier::kRoundedFloats;
    EXPECT_EQ(by_floats, &products(isa, ComputeDtype::kBf16) == &kernels(isa).bf16)
        << isa_name(isa);
  }
  EXPECT_EQ(bf16_multiplier_text(Bf16Multiplier::kTileUnit), "by the tile unit (AMX-BF16)");
  EXPECT_EQ(bf16_multiplier_text(Bf16Multiplier::kPairs), "by AVX-512's VDPBF16PS");
}

TEST(ComputeDtype, Bf16TakesMoreThanTheGenericSet) {
  for (const Isa isa : kEveryIsa) {
    EXPECT_TRUE(can_multiply(isa, ComputeDtype::kF32));
    EXPECT_EQ(can_multiply(isa, ComputeDtype::kBf16), isa != Isa::kGeneric);
  }
}

// Convolutions as products of bfloat16: bit-identical to the definition in their header.

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
