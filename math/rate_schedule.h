// The learning rate over a run: its factor in each step.
//
// For step t, counted from 0, of the `steps` steps after the warm-up:
//   linear:    1 - t / steps: falls linearly to 0 at the end, which removes the noise of the last
//              steps
//   none:      1
//   cosine:    (1 + cos(pi t / steps)) / 2: Loshchilov and Hutter's, "SGDR", without restarts
//   one_cycle: Smith and Topin's "Super-convergence", with the shape and the numbers of PyTorch's
//              OneCycleLR: half a cosine up from 1/25 to 1, reached at t = 0.3 steps - 1, then half
//              a cosine down to 1/250 000 in the last step
// The warm-up before it rises linearly: its step t has t / warmup_steps of the factor with which
// the rest begins, which is 1, or 1/25 for one_cycle. Its first step changes nothing, as in Keras
// and Hugging Face's schedules.
//
// Bit-identical on every machine: only double's + - * /, because the C library's cos differs
// between CPUs in the last bit.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace disttf::math {

enum class RateDecay : std::uint8_t { kLinear, kNone, kCosine, kOneCycle };
inline constexpr std::array<std::string_view, 4> kRateDecayNames = {"linear", "none", "cosine",
                                                                    "one_cycle"};
[[nodiscard]] std::string_view rate_decay_name(RateDecay decay) noexcept;

struct RateSchedule {
  RateDecay decay = RateDecay::kLinear;
  std::uint64_t steps = 1;         // of the run, including the warm-up
  std::uint64_t warmup_steps = 0;  // fewer than `steps`
};

// The factor of the learning rate in the step that follows `step` others. REQUIRES: step <
// schedule.steps.
[[nodiscard]] float rate_factor(const RateSchedule& schedule, std::uint64_t step) noexcept;

}  // namespace disttf::math
