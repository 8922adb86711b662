// The axis of a plot: what it spans, where its ticks are, and what they are called.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttf::roles {

// What a plot shows at most, either way: sums and differences of such numbers are finite.
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

// Ticks are 1, 2 or 5 times a power of ten apart, at most about `ticks` of them. `widen`: the axis
// begins and ends with a tick. Where all values are one, there is room around it.
// REQUIRES: least <= most, both of kMostShown at most.
[[nodiscard]] Axis linear_axis(double least, double most, std::size_t ticks, bool widen);

// Ticks are powers of ten, and twice and five times these where there are few of them. It begins
// and ends with a tick. REQUIRES: 0 < least <= most <= kMostShown.
[[nodiscard]] Axis log_axis(double least, double most, std::size_t ticks);

}  // namespace disttf::roles
