// adam: m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
//       w -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + epsilon)
#pragma once

#include <cmath>

#include "math/optimizer_spec.h"

namespace disttf::math {

struct AdamRule {
  static constexpr OptimizerKind kKind = OptimizerKind::kAdam;
  static constexpr std::string_view kName = "adam";
  static constexpr float kLearningRate = 0.01F;  // mnist_replica's
  static constexpr StateStart kState[] = {{.name = "m"}, {.name = "v"}};
  static constexpr std::size_t kStateCount = 2;

  // Includes both bias corrections.
  [[nodiscard]] static float rate_at(const OptimizerSpec& spec, float rate,
                                     std::uint64_t step) noexcept {
    const double unbias1 = 1.0 - power(double{spec.beta1}, step);
    const double unbias2 = 1.0 - power(double{spec.beta2}, step);
    // IEEE arithmetic rounds std::sqrt correctly, unlike std::pow.
    return static_cast<float>(double{rate} * std::sqrt(unbias2) / unbias1);
  }

  [[gnu::always_inline]] AdamRule(const OptimizerSpec& spec, float rate) noexcept
      : rate_(rate),
        beta1_(spec.beta1),
        beta2_(spec.beta2),
        rest1_(1.0F - spec.beta1),
        rest2_(1.0F - spec.beta2),
        epsilon_(spec.epsilon) {}
  [[gnu::always_inline]] float next(float w, float g, float& m, float& v) const noexcept {
    m = beta1_ * m + rest1_ * g;
    v = beta2_ * v + rest2_ * (g * g);
    return w - rate_ * m / (__builtin_sqrtf(v) + epsilon_);
  }

 private:
  // base^exponent by squaring: the C library's pow differs between CPUs in the last bit.
  [[nodiscard]] static double power(double base, std::uint64_t exponent) noexcept {
    double result = 1.0;
    for (; exponent != 0; exponent >>= 1U) {
      if ((exponent & 1U) != 0) {
        result *= base;
      }
      base *= base;
    }
    return result;
  }

  float rate_;
  float beta1_;
  float beta2_;
  float rest1_;
  float rest2_;
  float epsilon_;
};

}  // namespace disttf::math
