// Checks whether two ways to multiply are bit-identical, on numbers that are hard to add: a test of
// instructions whose results may differ between CPUs, before a run uses them.
#pragma once

#include "math/kernels_table.h"

namespace disttf::math {

// Returns true if all three products of both are bit-identical, for one small shape with partial
// tiles, vectors and chains. False also if there is no memory to try. Meanwhile the thread treats
// denormals as after flush_denormals(). REQUIRES: the CPU can run both.
[[nodiscard]] bool are_bit_identical(const Products& a, const Products& b) noexcept;

}  // namespace disttf::math
