// The axis of a plot: its range, the positions of its ticks, and their labels.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttf::roles {

// The largest absolute value in a plot: sums and differences of such numbers are finite.
inline constexpr double kMostShown = 1e30;

struct Tick {
  double value = 0;
  std::string name;  // "0.25", "20k", "1e-05"
};

struct Axis {
  double least = 0;
  double most = 1;  // above `least`
  bool is_log = false;
  std::vector<Tick> ticks;  // from `least` to `most`, in order

  // 0 at `least`, 1 at `most`.
  [[nodiscard]] double place_of(double value) const;
};

// Ticks are 1, 2 or 5 times a power of ten apart; there are about `ticks` of them at most. `widen`:
// the axis begins and ends at a tick. Adds room if all values are equal. REQUIRES: least <= most,
// both at most kMostShown.
[[nodiscard]] Axis linear_axis(double least, double most, std::size_t ticks, bool widen);

// Ticks are powers of ten, and twice and five times these if there are few. The axis begins and
// ends at a tick. REQUIRES: 0 < least <= most <= kMostShown.
[[nodiscard]] Axis log_axis(double least, double most, std::size_t ticks);

}  // namespace disttf::roles
