// Convolutions as matrix products, for products whose operands are rounded: float32's convolutions
// are direct (math/convolutions.inc). Same arguments and shapes as Kernels::convolve and
// Kernels::convolve_gradient.
//
// A block of rows of the output becomes a matrix with a row for each position: what that position
// sees of the image, in the order of the weights. A block is as many rows of the output as make a
// matrix of at most kMostMatrixFloats, one at least: a function of the shape alone.
//
// Order of the sums: an output is one element of a product, so its bits do not depend on blocks. A
// weight's gradient is, of each block, one element of a product over the block's positions, row by
// row; these are added to what is there, block by block. How a product adds is said in
// math/kernels_table.h.
//
// Pure functions, which allocate nothing: callable from any thread.
#pragma once

#include <cstddef>

#include "math/kernels_table.h"

namespace disttf::math {

// 1 MiB: with the weights it stays in a second-level cache.
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
