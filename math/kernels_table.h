// The kernels of one instruction set as a table of plain functions, which kernels_impl.inc defines
// once per set. The rest of math/ computes with it.
//
// Matrices are row-major without gaps between rows. Pointers to weights, gradients or activations
// are 64-byte aligned where a comment says so. The arguments of a call do not overlap, except where
// stated. Sizes may be zero.
//
// A product is bit-identical on AVX2, AVX-512 and NEON: each element is one chain of fused
// multiply-adds, and -0 becomes 0 at the end. The generic set has no such instruction and adds in
// another order, so it differs in the last bits. Everything else here is computed element by
// element with + - * / sqrt, each rounded once: bit-identical on every set, however the compiler
// vectorises it and wherever the caller splits the vector.
//
// Products of bfloat16: A and B are rounded to it, to nearest even as in math/rounding.h;
// everything else is float32. The depth is split into pieces of kBf16Chain steps. Each piece is one
// chain of fused multiply-adds from 0, in order; the chains' sums, plus 0, are added in sequence to
// the element's start value. Denormals count as 0. On a thread that has called flush_denormals()
// the results are bit-identical on AVX2, AVX-512, NEON, with VDPBF16PS and on the tile unit
// (AMX-BF16), and a row of C does not depend on the other rows of the call. All of these units can
// compute chains of 16. The generic set has no such products, because it lacks fused multiply-adds.
//
// Constant data and pure functions: callable from any thread. Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "math/kernels.h"
#include "math/optimizer_rules.h"

namespace disttf::math {

// C [rows, columns] = start + A [rows, depth] * B [depth, columns].
struct ProductShape {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t depth = 0;
  // product_at: the distance between rows of A as stored, in floats; 0: `rows`. Larger where only
  // some rows of C are computed.
  std::size_t a_stride = 0;
  [[nodiscard]] std::size_t stride_of_transposed() const noexcept {
    return a_stride == 0 ? rows : a_stride;
  }
};

// Floats of scratch that a product needs, 64-byte aligned: for the packed blocks of
// products_eigen.inc, which need more than products_tiles.inc.
inline constexpr std::size_t kProductScratchFloats = 264 * (200 + 480);

// Steps of the depth that a product of bfloat16 sums up separately.
inline constexpr std::size_t kBf16Chain = 16;

// A convolution of one image, stored position by position with adjacent channels, padding included.
// In floats: image [height, width, channels]; weights [kernel_height, kernel_width, channels,
// units]; output [out_height, out_width, units].
//   output[y, x, u] = start[u] + sum over i, j, c of
//                     image[y stride + i, x stride + j, c] * weights[i, j, c, u]
struct ConvolutionShape {
  std::size_t height = 0;  // of the image, including padding
  std::size_t width = 0;
  std::size_t channels = 0;
  std::size_t kernel_height = 0;
  std::size_t kernel_width = 0;
  std::size_t stride = 1;
  std::size_t out_height = 0;
  std::size_t out_width = 0;
  std::size_t units = 0;
};

// Windows of size x size positions, `stride` apart, in one image as above.
struct PoolingShape {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  std::size_t size = 0;
  std::size_t stride = 0;
  std::size_t out_height = 0;
  std::size_t out_width = 0;
};

// The inputs of batch norm's backward pass, for each channel.
struct ChannelDeltas {
  const float* means = nullptr;
  const float* scales = nullptr;
  const float* shared = nullptr;
  const float* slopes = nullptr;
};

// A sum of gradients: sum[i], or sum[i] + last[i] where `last` is not null.
struct GradientSum {
  const float* sum = nullptr;
  const float* last = nullptr;
};

// One update of a range of `count` parameters by an optimizer (optimizer_rules.h). g = the sum at i
// * scale. The new parameters are written to `w_next`, which may be `w` itself: the first exception
// to "no overlap".
struct OptimizerUpdate {
  const float* w = nullptr;
  float* w_next = nullptr;
  float* state[kMaxStateTensors] = {};  // as many as the optimizer has
  GradientSum gradient;
  std::size_t count = 0;
  float scale = 1;
  float rate = 0;  // of this step, after the rule's own adjustment
  // Weight decay: the share of each parameter that is added to its gradient, or, for a rule with
  // decoupled decay, subtracted from the parameter. 0: none.
  float decay = 0;
  const OptimizerSpec* spec = nullptr;
};

// The products of one operand type.
struct Products {
  // C = start + A B; each row starts from `start` [columns], or from 0 if that is null. `scratch`:
  // kProductScratchFloats.
  void (*product)(const float* a, const float* b, float* c, ProductShape shape, const float* start,
                  float* scratch) noexcept;
  // C = A^T B; A is stored as [depth, rows], or is part of such a matrix: ProductShape::a_stride.
  void (*product_at)(const float* a, const float* b, float* c, ProductShape shape,
                     float* scratch) noexcept;
  // C = A B^T; B is stored as [columns, depth].
  void (*product_bt)(const float* a, const float* b, float* c, ProductShape shape,
                     float* scratch) noexcept;
  // product and product_at with A = pixels_to_floats(`a`): bit-identical, and faster where most
  // pixels are 0. REQUIRES: the depth is not 0. Null where this is not faster than keeping the
  // floats.
  void (*product_of_pixels)(const std::uint8_t* a, const float* b, float* c, ProductShape shape,
                            const float* start, float* scratch) noexcept = nullptr;
  void (*product_at_of_pixels)(const std::uint8_t* a, const float* b, float* c, ProductShape shape,
                               float* scratch) noexcept = nullptr;
  // Whether operands are rounded to bfloat16 first. Convolutions then use products as well
  // (math/convolution_products.h).
  bool rounds_operands = false;
};

struct Kernels {
  Products f32;
  Products bf16;  // null on the generic set

  // bits[i] = the first two words of Philox's block (math/random.h) for this key and the counter
  // {first + i, 64 bits; stream, 64 bits including the purpose}.
  void (*random_bits)(std::uint64_t key, std::uint64_t stream, std::uint64_t first,
                      std::uint64_t* bits, std::size_t count) noexcept;

  // out[i] = pixels[i] * (1/255)
  void (*pixels_to_floats)(const std::uint8_t* pixels, float* out, std::size_t count) noexcept;
  // sums[j] = sum over i of matrix[i, j], added from the first row to the last.
  void (*column_sums)(const float* matrix, float* sums, std::size_t rows,
                      std::size_t columns) noexcept;
  // values[i] = max(values[i], 0)
  void (*relu)(float* values, std::size_t count) noexcept;
  // gradient[i] = output[i] > 0 ? gradient[i] : 0
  void (*relu_backward)(const float* output, float* gradient, std::size_t count) noexcept;
  // values[i] = tanh(values[i]), within 2 units in the last place; and gradient[i] *= 1 - output^2
  void (*tanh)(float* values, std::size_t count) noexcept;
  void (*tanh_backward)(const float* output, float* gradient, std::size_t count) noexcept;
  // values[i] = 1 / (1 + exp(-values[i])), within 2 units in the last place above -87, and 1.6e-38
  // below; and gradient[i] *= output (1 - output)
  void (*sigmoid)(float* values, std::size_t count) noexcept;
  void (*sigmoid_backward)(const float* output, float* gradient, std::size_t count) noexcept;
  // Replaces logits [rows, classes] by (softmax(logits) - target) * scale, with target =
  // onehot(label) (1 - smoothing) + smoothing / classes. Returns the sum over the rows of
  // log(sum(exp(logits))) - sum(target * logits), added in double. With smoothing, each row adds
  // first the label's part, then that of all classes from first to last. Finite for finite logits,
  // however large. REQUIRES: labels[i] < classes; 0 <= smoothing < 1.
  double (*softmax_cross_entropy)(float* logits, const std::uint8_t* labels, std::size_t rows,
                                  std::size_t classes, float scale, float smoothing) noexcept;
  // The same with (sigmoid(z) - target) * scale / classes, with target = onehot(label) (1 -
  // smoothing) + smoothing / 2. Returns the sum over the rows of the mean over the classes of log(1
  // + exp(z)) - target z; classes are added in double, in order.
  double (*sigmoid_cross_entropy)(float* logits, const std::uint8_t* labels, std::size_t rows,
                                  std::size_t classes, float scale, float smoothing) noexcept;

  // Each element is one chain from start[u], in the order of the weights.
  void (*convolve)(const float* image, const float* weights, const float* start, float* output,
                   const ConvolutionShape& shape) noexcept;
  // The gradient by the weights [kernel_height * kernel_width * channels, units], rows [begin,
  // end): adds that of this image, where `delta` is the gradient by its output. One chain over the
  // positions of the output, row by row.
  void (*convolve_gradient)(const float* image, const float* delta, float* gradient,
                            std::size_t begin, std::size_t end,
                            const ConvolutionShape& shape) noexcept;
  // For each window the largest number, and its index in the window (0, 1, ... row by row): the
  // first of equals; a NaN if there is one. The backward pass puts `delta` there and 0 elsewhere.
  void (*max_pool)(const float* image, float* output, float* chosen,
                   const PoolingShape& shape) noexcept;
  void (*max_pool_backward)(const float* delta, const float* chosen, float* image,
                            const PoolingShape& shape) noexcept;
  // For each window the sum, row by row, times 1/size^2; and the backward pass.
  void (*average_pool)(const float* image, float* output, const PoolingShape& shape) noexcept;
  void (*average_pool_backward)(const float* delta, float* image,
                                const PoolingShape& shape) noexcept;

  // Batch norm, for rows [positions, channels]. For each channel of one row the mean over the
  // positions, and the sum of squared deviations from it. A sum over positions has four chains;
  // chain j adds the positions p with p % 4 = j in order, then (0 + 1) + (2 + 3).
  void (*channel_moments)(const float* values, float* means, float* squares, std::size_t positions,
                          std::size_t channels) noexcept;
  // `moments` [rows, 2 channels]: both for each row. For all rows together: the mean m of their
  // means, and the sum of squares + positions * (mean - m)^2, each from the first row to the last.
  void (*merge_moments)(const float* moments, float* means, float* squares, std::size_t rows,
                        std::size_t positions, std::size_t channels) noexcept;
  // For one row, as channel_moments(): the sums of delta and of delta * ((value - mean) * factor).
  void (*channel_delta_sums)(const float* values, const float* delta, const float* means,
                             const float* factors, float* sums, float* products,
                             std::size_t positions, std::size_t channels) noexcept;
  // out = value * scale + shift
  void (*scale_channels)(const float* values, const float* scales, const float* shifts, float* out,
                         std::size_t positions, std::size_t channels) noexcept;
  // out = scale * ((delta - shared) - (value - mean) * slope)
  void (*batch_norm_backward)(const float* values, const float* delta, const ChannelDeltas& of,
                              float* out, std::size_t positions, std::size_t channels) noexcept;

  // By OptimizerKind.
  void (*update[OptimizerRules::kCount])(const OptimizerUpdate& update) noexcept;
  // Running statistics: momentum w + (1 - momentum) g, without rate, decay and state.
  void (*update_running)(const OptimizerUpdate& update, float momentum) noexcept;
  // average[i] -= rate * (average[i] - w[i])
  void (*average)(float* average, const float* w, float rate, std::size_t count) noexcept;
  // to[i] = a[i] + b[i]; `to` may be `a`: the second exception
  void (*add)(float* to, const float* a, const float* b, std::size_t count) noexcept;

  // The sum of values[i]^2, in the order of math/norm.h.
  double (*sum_of_squares)(const float* values, std::size_t count) noexcept;
  // The largest magnitude of values[i], as bits: that of infinity, 0x7f800000, or more if one is
  // NaN. 0 for no values.
  std::uint32_t (*largest_magnitude)(const float* values, std::size_t count) noexcept;
  // values[i] *= factor
  void (*scale)(float* values, float factor, std::size_t count) noexcept;

  // bfloat16, by the rules of math/rounding.h. In the last one `to` may be `from`: the third
  // exception.
  void (*to_bf16)(const float* from, std::uint16_t* to, std::size_t count) noexcept;
  void (*from_bf16)(const std::uint16_t* from, float* to, std::size_t count) noexcept;
  void (*round_to_bf16)(const float* from, float* to, std::size_t count) noexcept;

  // Block floating point, by the rules of math/rounding.h: one exponent for each 16 numbers,
  // `bits` (8 or 4) of each number. In the last one `to` may be `from`: the fourth exception.
  void (*to_blocks)(const float* from, std::uint8_t* exponents, std::uint8_t* numbers,
                    std::size_t count, unsigned bits) noexcept;
  void (*from_blocks)(const std::uint8_t* exponents, const std::uint8_t* numbers, float* to,
                      std::size_t count, unsigned bits) noexcept;
  void (*round_to_blocks)(const float* from, float* to, std::size_t count, unsigned bits) noexcept;
};

// The sets that this binary contains; kernels.cc selects one. generic exists everywhere, neon on
// aarch64, the others on x86-64.
namespace generic {
extern const Kernels kKernels;
}
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
namespace neon {
extern const Kernels kKernels;
}

// Only products of bfloat16, for CPUs that have AVX-512 and the tile unit, or VDPBF16PS.
namespace amx {
extern const Products kProducts;
}
namespace avx512_bf16 {
extern const Products kProducts;
}

// The fastest products of this CPU: the table's, or those of bf16_multiplier(). REQUIRES: isa is in
// supported_isas() and supports `dtype`.
[[nodiscard]] const Products& products(Isa isa, ComputeDtype dtype) noexcept;

}  // namespace disttf::math
