// Whether two ways to multiply give the same bits, tried on numbers that are hard to add: for
// instructions that are not trusted to do the same on every CPU, before they multiply in a run.
#pragma once

#include "math/kernels_table.h"

namespace disttf::math {

// True: all three products of each, of one small shape with parts of tiles, vectors and chains, are
// the same bits. False as well where there is no memory to try. The thread's treatment of denormals
// is that of flush_denormals() meanwhile. REQUIRES: the CPU can run both.
[[nodiscard]] bool give_same_bits(const Products& a, const Products& b) noexcept;

}  // namespace disttf::math
