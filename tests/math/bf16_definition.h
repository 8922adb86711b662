// Products of bfloat16 as math/kernels_table.h defines them, computed one number at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "math/aligned.h"
#include "math/kernels_table.h"
#include "math/rounding.h"

namespace disttf::math {

inline AlignedVector rounded(const AlignedVector& from) {
  AlignedVector to(from.size());
  round_to_bf16(from.span(), to.span(), Isa::kGeneric);
  return to;
}

// Returns `start` plus the sums of the chains, added one after the other. factors(k): the pair of
// step k.
// REQUIRES: flush_denormals().
template <typename Factors>
float sum_in_chains(float start, std::size_t depth, const Factors& factors) {
  float sum = start;
  for (std::size_t first = 0; first < depth; first += kBf16Chain) {
    float chain = 0.0F;
    for (std::size_t k = first; k < std::min(first + kBf16Chain, depth); ++k) {
      const auto [a, b] = factors(k);
      chain = std::fma(a, b, chain);
    }
    sum += chain + 0.0F;
  }
  return sum;
}

}  // namespace disttf::math
