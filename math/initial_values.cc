#include "math/initial_values.h"

#include "math/random.h"

namespace disttf::math {
namespace {

// exp(-t) for 0 <= t <= 2, within 1e-14: (exp(-t/8))^8 by the first terms of the series. Uses only
// + and *, so that every machine draws the same initial values.
double exp_of_minus(double t) noexcept {
  const double x = -t / 8.0;
  double sum = 1.0;
  for (int k = 12; k >= 1; --k) {  // |x| <= 1/4: the first omitted term is below 3e-18
    sum = 1.0 + sum * x / k;
  }
  const double square = sum * sum;
  const double fourth = square * square;
  return fourth * fourth;
}

}  // namespace

// Rejection sampling: a uniform z in [-2, 2) is accepted with probability exp(-z^2/2), three times
// in five. Attempt k of element i draws with the index k * 2^40 + i: no variable has 2^40 elements.
double truncated_normal(std::uint64_t seed, std::uint64_t variable,
                        std::uint64_t element) noexcept {
  constexpr double kUnit = 1.0 / 4294967296.0;  // 2^-32
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t bits =
        random_bits(seed, static_cast<std::uint32_t>(Purpose::kInitialValues), variable,
                    (attempt << 40U) + element);
    const double z = 4.0 * kUnit * static_cast<double>(bits >> 32U) - 2.0;
    const double keep = kUnit * static_cast<double>(bits & 0xFFFFFFFFU);
    if (keep < exp_of_minus(z * z / 2.0)) {
      return z;
    }
  }
}

}  // namespace disttf::math
