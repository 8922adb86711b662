// dense: out [units] = in w + b, with w [inputs, units] and b [units]. An image is taken as the
// numbers that it consists of.
//
// Initial values: w from the truncated normal distribution with deviation 1/sqrt(inputs), as
// mnist_replica.py has it, or 0 (initial = "zeros"); b is 0. Kept for the way back: nothing but
// input and output.
//
// Order of the sums (math/kernels_table.h): an output is one chain that begins with its bias, over
// the inputs in order; an input's delta one over the units; a weight's gradient one over the rows
// of the batch; a bias's the sum over these from the first to the last.
#pragma once

#include "math/layers/layer_type.h"

namespace disttf::math {

[[nodiscard]] const LayerType& dense() noexcept;

}  // namespace disttf::math
