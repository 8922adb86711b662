// conv2d: an image [height, width, channels] becomes one with other channels; at each position,
//
//   out[y, x, u] = b[u] + sum over i, j, c of in[y stride + i - top, x stride + j - left, c] * w[i,
//   j, c, u]
//
// with w [kernel, kernel, channels of the input, channels] and b [channels]; what lies beside the
// image is 0. Padding as TensorFlow has it. "same": as much of it that the output is
// ceil(input / stride) high and wide, top and left the smaller half of it. "valid": none.
//
// Initial values: w from the normal distribution cut at two deviations, which are sqrt(2/n) ("he",
// K. He et al., "Delving Deep into Rectifiers", ICCV 2015) or 1/sqrt(n) ("truncated_normal"), where
// n is kernel * kernel * channels of the input; b is 0. Kept for the way back: the input with its
// padding, as floats.
//
// Order of the sums: an output is one chain that begins with its bias, over i, j, c in order, the
// zeros of the padding among them. An input's delta is the same with the loss by the output in the
// place of the image (zeros around it and, where the stride is more than 1, between), and the
// kernel turned by half a turn: over i, j, u. A weight's gradient is one chain over (row of the
// batch, y, x) in order; a bias's the sum over these from the first to the last. With products of
// bfloat16 all three are products, whose sums math/convolution_products.h orders.
#pragma once

#include "math/layers/layer_type.h"

namespace disttf::math {

[[nodiscard]] const LayerType& convolution() noexcept;

}  // namespace disttf::math
