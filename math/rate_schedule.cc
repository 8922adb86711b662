#include "math/rate_schedule.h"

#include <cassert>

#include "math/names.h"

namespace disttf::math {
namespace {

// For one_cycle: PyTorch's pct_start, div_factor and final_div_factor.
constexpr double kRisingShare = 0.3;
constexpr double kFirstFactor = 1.0 / 25.0;
constexpr double kLastFactor = kFirstFactor / 1e4;

// cos(pi x) for 0 <= x <= 1, as the sine of the complement to a right angle, by its series.
double cos_of_half_turns(double x) noexcept {
  const double y = 3.14159265358979323846 * (0.5 - x);
  const double square = y * y;
  double sum = 1.0;
  for (int k = 20; k >= 2; k -= 2) {  // |y| <= pi / 2: the first omitted term is below 2e-18
    sum = 1.0 - sum * square / (k * (k + 1));
  }
  return sum * y;
}

// From `first` to `last` along half a cosine, as x goes from 0 to 1.
double along_cosine(double first, double last, double x) noexcept {
  return last + (first - last) * (1.0 + cos_of_half_turns(x)) / 2.0;
}

// The peak is at a possibly fractional step, and before the first step in a run of three.
double one_cycle(double step, double steps) noexcept {
  const double peak = kRisingShare * steps - 1.0;
  if (step < peak) {
    return along_cosine(kFirstFactor, 1.0, step / peak);
  }
  return along_cosine(1.0, kLastFactor, (step - peak) / (steps - 1.0 - peak));
}

// After the warm-up. The linear decay uses floats, because results of existing runs depend on its
// bits.
float factor_after_warmup(RateDecay decay, std::uint64_t step, std::uint64_t steps) noexcept {
  switch (decay) {
    case RateDecay::kLinear:
      return 1.0F - static_cast<float>(step) / static_cast<float>(steps);
    case RateDecay::kNone:
      break;
    case RateDecay::kCosine:
      return static_cast<float>(
          along_cosine(1.0, 0.0, static_cast<double>(step) / static_cast<double>(steps)));
    case RateDecay::kOneCycle:
      return static_cast<float>(one_cycle(static_cast<double>(step), static_cast<double>(steps)));
  }
  return 1.0F;
}

}  // namespace

std::string_view rate_decay_name(RateDecay decay) noexcept {
  return name_of(kRateDecayNames, decay);
}

float rate_factor(const RateSchedule& schedule, std::uint64_t step) noexcept {
  assert(step < schedule.steps && schedule.warmup_steps < schedule.steps);
  // The decay covers the steps after the warm-up, so it ends with the run whatever the warm-up's
  // length.
  const std::uint64_t rest = schedule.steps - schedule.warmup_steps;
  if (step >= schedule.warmup_steps) {
    return factor_after_warmup(schedule.decay, step - schedule.warmup_steps, rest);
  }
  const double share = static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  return static_cast<float>(share * double{factor_after_warmup(schedule.decay, 0, rest)});
}

}  // namespace disttf::math
