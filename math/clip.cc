#include "math/clip.h"

#include <cassert>
#include <cmath>

#include "math/kernels_table.h"

namespace disttf::math {

double norm_of(std::span<const float> values, Isa isa) noexcept {
  // std::sqrt is exact by the standard of the arithmetic.
  return std::sqrt(kernels(isa).sum_of_squares(values.data(), values.size()));
}

void clip_by_norm(std::span<float> gradient, float most, Isa isa) noexcept {
  assert(most > 0);
  const double norm = norm_of(gradient, isa);
  if (norm > double{most}) {
    kernels(isa).scale(gradient.data(), static_cast<float>(double{most} / norm), gradient.size());
  }
}

}  // namespace disttf::math
