// The kernels of one instruction set, as a table of plain functions: what kernels_impl.inc
// defines once per set, and what the rest of math/ computes with.
//
// Matrices are row-major without gaps between the rows. Pointers to floats that are weights,
// gradients or activations are 64-byte aligned where a comment says so; no two arguments of one
// call overlap. Sizes may be zero.
//
// A product's bits on AVX2, on AVX-512 and on NEON are the same: each element is one chain of fused
// multiply-adds, and where that comes to -0, it is 0. The generic set has no such instruction and
// adds in another order, so it differs from them in the last bits. Everything else here is written
// element by element from + - * / sqrt, each rounded once: the same bits on every set, however the
// compiler vectorises it and wherever the caller cuts the vector.
//
// Products of bfloat16: A and B are rounded to it, to nearest even as in math/bf16.h; everything
// else is float32. The depth is cut into pieces of kBf16Chain steps. Each piece is one chain of
// fused multiply-adds from 0, in order; the chains' sums, plus 0, are added one after the other to
// what the element starts from. Denormals count as 0. On a thread
// that has called flush_denormals() the bits are the same on AVX2, on AVX-512, on NEON, with
// VDPBF16PS and on the tile unit (AMX-BF16), and those of a row of C do not depend on which other
// rows the call computes. Chains of 16 are what all of them can make. The generic set has none: it
// lacks the instruction that multiplies and adds.
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
  // product_at: from one row of A, as it lies, to the next, in floats; 0: `rows`. More where only
  // some rows of C are computed.
  std::size_t a_stride = 0;
  [[nodiscard]] std::size_t stride_of_transposed() const noexcept {
    return a_stride == 0 ? rows : a_stride;
  }
};

// Floats of scratch that a product needs, 64-byte aligned: the packed blocks of products_eigen.inc,
// which take more than products_tiles.inc.
inline constexpr std::size_t kProductScratchFloats = 264 * (200 + 480);

// Steps of the depth that a product of bfloat16 sums up by themselves.
inline constexpr std::size_t kBf16Chain = 16;

// A convolution of one image that lies position by position, the channels of each side by side, and
// has its padding around it. In floats: image [height, width, channels]; weights [kernel_height,
// kernel_width, channels, units]; output [out_height, out_width, units].
//   output[y, x, u] = start[u] + sum over i, j, c of
//                     image[y stride + i, x stride + j, c] * weights[i, j, c, u]
struct ConvolutionShape {
  std::size_t height = 0;  // of the image, with its padding
  std::size_t width = 0;
  std::size_t channels = 0;
  std::size_t kernel_height = 0;
  std::size_t kernel_width = 0;
  std::size_t stride = 1;
  std::size_t out_height = 0;
  std::size_t out_width = 0;
  std::size_t units = 0;
};

// Windows of size x size positions, `stride` apart, of one image as above.
struct PoolingShape {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;
  std::size_t size = 0;
  std::size_t stride = 0;
  std::size_t out_height = 0;
  std::size_t out_width = 0;
};

// What batch norm's way back needs of each channel.
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
// * scale. The new parameters go to `w_next`, which may be `w` itself: the one exception to "no
// overlap".
struct OptimizerUpdate {
  const float* w = nullptr;
  float* w_next = nullptr;
  float* state[kMaxStateTensors] = {};  // as many as the optimizer has
  GradientSum gradient;
  std::size_t count = 0;
  float scale = 1;
  float rate = 0;  // the learning rate of this step, with what the rule makes of it
  // Weight decay: what of each parameter is added to its gradient; of a rule that decouples it,
  // what is taken off the parameter. 0: none.
  float decay = 0;
  const OptimizerSpec* spec = nullptr;
};

// The products of one operand type.
struct Products {
  // C = start + A B; each row starts from `start` [columns], or from 0 where that is null.
  // `scratch`: kProductScratchFloats.
  void (*product)(const float* a, const float* b, float* c, ProductShape shape, const float* start,
                  float* scratch) noexcept;
  // C = A^T B; A lies as [depth, rows], or is part of such a matrix: ProductShape::a_stride.
  void (*product_at)(const float* a, const float* b, float* c, ProductShape shape,
                     float* scratch) noexcept;
  // C = A B^T; B lies as [columns, depth].
  void (*product_bt)(const float* a, const float* b, float* c, ProductShape shape,
                     float* scratch) noexcept;
  // The first two where A is what pixels_to_floats() makes of `a`: the same bits, and where most
  // pixels are 0 in less time. REQUIRES: the depth is not 0. Null where that is not quicker
  // than to keep the floats.
  void (*product_of_pixels)(const std::uint8_t* a, const float* b, float* c, ProductShape shape,
                            const float* start, float* scratch) noexcept = nullptr;
  void (*product_at_of_pixels)(const std::uint8_t* a, const float* b, float* c, ProductShape shape,
                               float* scratch) noexcept = nullptr;
  // Operands are rounded to bfloat16 first. Then a convolution is a product as well
  // (math/convolution_products.h).
  bool rounds_operands = false;
};

struct Kernels {
  Products f32;
  Products bf16;  // null on the generic set

  // bits[i] = the first two words of Philox's block (math/random.h) for the counter {first + i, 64
  // bits; stream, 64 bits with the purpose} and this key: integers.
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
  // values[i] = tanh(values[i]), within 2 units in the last place; then gradient[i] *= 1 - output^2
  void (*tanh)(float* values, std::size_t count) noexcept;
  void (*tanh_backward)(const float* output, float* gradient, std::size_t count) noexcept;
  // values[i] = 1 / (1 + exp(-values[i])), within 2 units in the last place above -87, and 1.6e-38
  // below; then gradient[i] *= output (1 - output)
  void (*sigmoid)(float* values, std::size_t count) noexcept;
  void (*sigmoid_backward)(const float* output, float* gradient, std::size_t count) noexcept;
  // In: logits [rows, classes]. Out, in their place: (softmax(logits) - target) * scale, where the
  // target is onehot(label) (1 - smoothing) + smoothing / classes. Returns the sum over the rows of
  // log(sum(exp(logits))) - sum(target * logits), added in double: with smoothing, of each row
  // first the label's part, then that of all classes, added from the first to the last.
  // Finite for finite logits, however large. REQUIRES: labels[i] < classes; 0 <= smoothing < 1.
  double (*softmax_cross_entropy)(float* logits, const std::uint8_t* labels, std::size_t rows,
                                  std::size_t classes, float scale, float smoothing) noexcept;
  // The same of (sigmoid(z) - target) * scale / classes, where the target is onehot(label)
  // (1 - smoothing) + smoothing / 2. Returns the sum over the rows of the means over the classes of
  // log(1 + exp(z)) - target z, classes added in double in their order.
  double (*sigmoid_cross_entropy)(float* logits, const std::uint8_t* labels, std::size_t rows,
                                  std::size_t classes, float scale, float smoothing) noexcept;

  // Each element one chain from start[u], in the order of the weights.
  void (*convolve)(const float* image, const float* weights, const float* start, float* output,
                   const ConvolutionShape& shape) noexcept;
  // The loss by the weights [kernel_height * kernel_width * channels, units], its rows [begin,
  // end): of this image, whose output's is `delta`, added to what is there; one chain over the
  // positions of the output, row by row.
  void (*convolve_gradient)(const float* image, const float* delta, float* gradient,
                            std::size_t begin, std::size_t end,
                            const ConvolutionShape& shape) noexcept;
  // Of each window the largest number, and where in the window it is (0, 1, ... row by row): the
  // first of equals; a NaN if there is one. Then the way back: `delta` goes where it was, and 0
  // elsewhere.
  void (*max_pool)(const float* image, float* output, float* chosen,
                   const PoolingShape& shape) noexcept;
  void (*max_pool_backward)(const float* delta, const float* chosen, float* image,
                            const PoolingShape& shape) noexcept;
  // Of each window the sum, row by row, times 1/size^2; and its way back.
  void (*average_pool)(const float* image, float* output, const PoolingShape& shape) noexcept;
  void (*average_pool_backward)(const float* delta, float* image,
                                const PoolingShape& shape) noexcept;

  // Batch norm, of rows [positions, channels]. Of each channel of one row the mean over the
  // positions, and the sum of the squares of what the values have beside it. A sum over positions
  // is four chains, chain j the positions p with p % 4 = j in order, and then (0 + 1) + (2 + 3).
  void (*channel_moments)(const float* values, float* means, float* squares, std::size_t positions,
                          std::size_t channels) noexcept;
  // `moments` [rows, 2 channels]: of each row both. Of all of them together: the mean m of their
  // means, and the sum of squares + positions * (mean - m)^2, each from the first row to the last.
  void (*merge_moments)(const float* moments, float* means, float* squares, std::size_t rows,
                        std::size_t positions, std::size_t channels) noexcept;
  // Of one row, as in channel_moments(): the sums of delta and of delta * ((value - mean) *
  // factor).
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
  // Of running statistics: momentum w + (1 - momentum) g, without rate, decay and state.
  void (*update_running)(const OptimizerUpdate& update, float momentum) noexcept;
  // average[i] -= rate * (average[i] - w[i])
  void (*average)(float* average, const float* w, float rate, std::size_t count) noexcept;
  // to[i] = a[i] + b[i]; `to` may be `a`: the other exception
  void (*add)(float* to, const float* a, const float* b, std::size_t count) noexcept;

  // The sum of values[i]^2: math/clip.h has its order.
  double (*sum_of_squares)(const float* values, std::size_t count) noexcept;
  // The largest of values[i] without their signs, as bits: those of infinity, 0x7f800000, or more
  // where one of them is no number. 0 of none.
  std::uint32_t (*largest_magnitude)(const float* values, std::size_t count) noexcept;
  // values[i] *= factor
  void (*scale)(float* values, float factor, std::size_t count) noexcept;

  // bfloat16, math/bf16.h has the rules. In the last one `to` may be `from`: the third exception.
  void (*to_bf16)(const float* from, std::uint16_t* to, std::size_t count) noexcept;
  void (*from_bf16)(const std::uint16_t* from, float* to, std::size_t count) noexcept;
  void (*round_to_bf16)(const float* from, float* to, std::size_t count) noexcept;

  // Block floating point, math/block_float.h has the rules: one exponent for each 16 numbers,
  // `bits` (8 or 4) of each number. In the last one `to` may be `from`: the fourth exception.
  void (*to_blocks)(const float* from, std::uint8_t* exponents, std::uint8_t* numbers,
                    std::size_t count, unsigned bits) noexcept;
  void (*from_blocks)(const std::uint8_t* exponents, const std::uint8_t* numbers, float* to,
                      std::size_t count, unsigned bits) noexcept;
  void (*round_to_blocks)(const float* from, float* to, std::size_t count, unsigned bits) noexcept;
};

// The sets that this file carries; kernels.cc picks. The first is everywhere; neon is aarch64's,
// the others x86-64's.
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

// Products of bfloat16 alone, for CPUs that have AVX-512 and the tile unit, or VDPBF16PS.
namespace amx {
extern const Products kProducts;
}
namespace avx512_bf16 {
extern const Products kProducts;
}

// What multiplies fastest on this CPU: the table's products, or what bf16_multiplier() names.
// REQUIRES: isa is in supported_isas(), and has `dtype`.
[[nodiscard]] const Products& products(Isa isa, ComputeDtype dtype) noexcept;

}  // namespace disttf::math
