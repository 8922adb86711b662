// conv2d: maps an image [height, width, channels] to one with other channels; at each position,
//
//   out[y, x, u] = b[u] + sum over i, j, c of in[y stride + i - top, x stride + j - left, c] * w[i,
//   j, c, u]
//
// with w [kernel, kernel, channels of the input, channels] and b [channels]; values beside the
// image are 0. Padding as in TensorFlow. "same": so much that the output is ceil(input / stride)
// high and wide, with the smaller half at the top and left. "valid": none.
//
// Initial values: w from the normal distribution truncated at two deviations, which are sqrt(2/n)
// ("he", K. He et al., "Delving Deep into Rectifiers", ICCV 2015) or 1/sqrt(n)
// ("truncated_normal"), where n is kernel * kernel * channels of the input; b is 0. Kept for the
// backward pass: the input with its padding, as floats.
//
// Order of the sums: an output is one chain that begins with its bias, over i, j, c in order,
// including the zeros of the padding. An input's delta is computed alike from the gradient by the
// output (with zeros around it and, for strides above 1, in between) and the kernel rotated by 180
// degrees: over i, j, u. A weight's gradient is one chain over (row of the batch, y, x) in order; a
// bias's is the sum over these from first to last. With products of bfloat16 all three are
// products, in the order of math/convolution_products.h.
#pragma once

#include "math/layers/registry.h"

namespace disttf::math {

[[nodiscard]] const LayerType& convolution() noexcept;

}  // namespace disttf::math
