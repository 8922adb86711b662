#include "math/finite.h"

#include <cstdint>

#include "math/kernels_table.h"

namespace disttf::math {

bool all_finite(std::span<const float> values, Isa isa) noexcept {
  // As integers the magnitudes of NaN lie above that of infinity, and all finite ones below.
  constexpr std::uint32_t kInfinity = 0x7f800000;
  return kernels(isa).largest_magnitude(values.data(), values.size()) < kInfinity;
}

}  // namespace disttf::math
