// What the weights of a model begin with.
#pragma once

#include <cstdint>

namespace disttf::math {

// A draw from the standard normal distribution cut at two standard deviations: a function of these,
// the same bits on every machine. REQUIRES: element < 2^40.
[[nodiscard]] double truncated_normal(std::uint64_t seed, std::uint64_t variable,
                                      std::uint64_t element) noexcept;

}  // namespace disttf::math
