// Measures a synchronous step over both transports beside the raw exchange of the same bytes
// between as many processes, in turn.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/exchange.h"
#include "bench/reporter.h"

namespace disttf::bench {

// The repeated operation of a side, and why its result was wrong, if it was.
struct Runner {
  const char* name;
  std::function<void()> step;
  std::function<std::optional<std::string>()> fault;
};

// REQUIRES: the exchanger outlives it.
template <typename Exchanger>
Runner runner_of(const char* name, Exchanger& exchanger) {
  return {
      .name = name, .step = [&] { exchanger.step(); }, .fault = [&] { return exchanger.fault(); }};
}

// The measured times of one side.
struct Side {
  std::string name;            // the first is the floor of the others, e.g. "raw" for "tcp"
  std::vector<double> times;   // us per step: the mean of each round
  std::vector<double> to_raw;  // the same divided by the first side's; empty for the first side

  // `floor`: the first side's name.
  [[nodiscard]] Figure figure(const std::string& own_name, const std::string& floor) const;
};

// Returns whether the free memory holds the processes of all sides.
[[nodiscard]] bool fits(const ClusterShape& shape);

// Measures in turns of 100 ms; the first runner is the floor. `quick`: one step per round. Throws
// std::runtime_error if a side has a fault.
[[nodiscard]] std::vector<Side> measure_in_turn(const std::vector<Runner>& runners, int rounds,
                                                bool quick);

// Measures the raw side first. `quick`: one step per round. Throws std::runtime_error if a side's
// result is wrong.
[[nodiscard]] std::vector<Side> measure_sides(const ClusterShape& shape, int rounds, bool quick);

}  // namespace disttf::bench
