// Initial values of weights.
#pragma once

#include <cstdint>

namespace disttf::math {

// A draw from the standard normal distribution truncated at two standard deviations. A function of
// the arguments, bit-identical on every machine. REQUIRES: element < 2^40.
[[nodiscard]] double truncated_normal(std::uint64_t seed, std::uint64_t variable,
                                      std::uint64_t element) noexcept;

}  // namespace disttf::math
