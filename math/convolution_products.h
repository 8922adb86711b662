// Convolutions as matrix products, for products with rounded operands. Convolutions in float32 are
// direct (math/convolutions.inc). Same arguments and shapes as Kernels::convolve and
// Kernels::convolve_gradient.
//
// A block of rows of the output becomes a matrix with a row for each position, which holds the part
// of the image that the position sees, in the order of the weights (im2col). A block has as many
// rows of the output as fit into a matrix of kMostMatrixFloats, at least one: a function of the
// shape alone.
//
// Order of the sums: an output is one element of a product, so its bits do not depend on blocks. A
// weight's gradient is, for each block, one element of a product over the block's positions, row by
// row; these are added to the existing value, block by block. math/kernels_table.h defines how a
// product adds.
//
// Pure functions that allocate nothing: callable from any thread.
#pragma once

#include <cstddef>

#include "math/kernels_table.h"

namespace disttf::math {

// 1 MiB: fits into a second-level cache together with the weights.
inline constexpr std::size_t kMostMatrixFloats = std::size_t{1} << 18U;

// Floats of scratch that each of the two needs; 64-byte aligned.
[[nodiscard]] std::size_t convolution_scratch_floats(const ConvolutionShape& shape) noexcept;

void convolve(const Products& products, const float* image, const float* weights,
              const float* start, float* output, const ConvolutionShape& shape,
              float* scratch) noexcept;

// `gradient` [kernel_height * kernel_width * channels, units]: its rows [begin, end).
void convolve_gradient(const Products& products, const float* image, const float* delta,
                       float* gradient, std::size_t begin, std::size_t end,
                       const ConvolutionShape& shape, float* scratch) noexcept;

}  // namespace disttf::math
