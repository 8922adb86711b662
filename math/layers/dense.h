// dense: out [units] = in w + b, with w [inputs, units] and b [units]. An image is treated as a
// flat list of numbers.
//
// Initial values: w from the truncated normal distribution with deviation 1/sqrt(inputs), as in
// mnist_replica.py, or 0 (initial = "zeros"); b is 0. Kept for the backward pass: only input and
// output.
//
// Order of the sums (math/kernels_table.h): an output is one chain that begins with its bias, over
// the inputs in order; an input's delta is one over the units; a weight's gradient is one over the
// rows of the batch; a bias's is the sum over these from first to last.
#pragma once

#include "math/layers/registry.h"

namespace disttf::math {

[[nodiscard]] const LayerType& dense() noexcept;

}  // namespace disttf::math
