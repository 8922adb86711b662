#include "math/norm.h"

#include <cassert>
#include <cmath>
#include <cstdint>

#include "math/kernels_table.h"

namespace disttf::math {

double norm_of(std::span<const float> values, std::span<const Range> ranges, Isa isa) noexcept {
  double sum = 0;
  for (const Range& range : ranges) {
    assert(range.end <= values.size());
    sum += kernels(isa).sum_of_squares(values.data() + range.begin, range.size());
  }
  return std::sqrt(sum);  // correctly rounded by IEEE arithmetic
}

void clip_by_norm(std::span<float> gradient, std::span<const Range> ranges, float most,
                  Isa isa) noexcept {
  assert(most > 0);
  // A NaN is not greater than the bound, so such a gradient is left unchanged.
  // The norm covers the whole vector even if it is divided among ps, so their number has no effect.
  const double norm = norm_of(gradient, ranges, isa);
  if (norm > double{most}) {
    const auto factor = static_cast<float>(double{most} / norm);
    for (const Range& range : ranges) {
      kernels(isa).scale(gradient.data() + range.begin, factor, range.size());
    }
  }
}

bool all_finite(std::span<const float> values, Isa isa) noexcept {
  // As integers the magnitudes of NaN lie above that of infinity, and all finite ones below.
  constexpr std::uint32_t kInfinity = 0x7f800000;
  return kernels(isa).largest_magnitude(values.data(), values.size()) < kInfinity;
}

}  // namespace disttf::math
