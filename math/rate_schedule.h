// How the learning rate moves over a run: what it is multiplied by in each step.
//
// Of `steps` steps, those after the warm-up, step t of them, from 0:
//   linear:    1 - t / steps: falls evenly, to 0 at the end: the noise of the last steps does not
//              stay in
//   none:      1
//   cosine:    (1 + cos(pi t / steps)) / 2: Loshchilov and Hutter's, "SGDR", without restarts
//   one_cycle: Smith and Topin's "Super-convergence", with the shape and the numbers of PyTorch's
//              OneCycleLR: half a cosine up from 1/25 to 1, reached at t = 0.3 steps - 1, then half
//              a cosine down to 1/250 000 in the last step
// In front of it the warm-up rises evenly: step t of it has t / warmup_steps of what the rest
// begins with, which is 1, and of one_cycle 1/25. Its first step changes nothing, as in Keras and
// Hugging Face's schedules.
//
// The same bits on every machine: double's + - * / alone, as the C library's cos picks its code by
// CPU, and its last bit with it.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace disttf::math {

enum class RateDecay : std::uint8_t { kLinear, kNone, kCosine, kOneCycle };
inline constexpr std::array<std::string_view, 4> kRateDecayNames = {"linear", "none", "cosine",
                                                                    "one_cycle"};
[[nodiscard]] std::string_view rate_decay_name(RateDecay decay) noexcept;
[[nodiscard]] std::optional<RateDecay> rate_decay_from_name(std::string_view name) noexcept;

struct RateSchedule {
  RateDecay decay = RateDecay::kLinear;
  std::uint64_t steps = 1;         // of the run, warm-up included
  std::uint64_t warmup_steps = 0;  // fewer than `steps`
};

// What the learning rate is multiplied by in the step that follows `step` others.
// REQUIRES: step < schedule.steps.
[[nodiscard]] float rate_factor(const RateSchedule& schedule, std::uint64_t step) noexcept;

}  // namespace disttf::math
