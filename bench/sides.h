// A synchronous step over both transports beside the raw exchange of the same bytes between as many
// processes, in turn.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/exchange.h"
#include "bench/reporter.h"

namespace disttf::bench {

// What one side took.
struct Side {
  std::string name;            // "raw", the floor of the others, "tcp" or "shm"
  std::vector<double> times;   // us a step: the mean of each round
  std::vector<double> to_raw;  // the same, by the raw side's beside it; of the raw side, empty

  // `floor`: the raw side's name.
  [[nodiscard]] Figure figure(const std::string& own_name, const std::string& floor) const;
};

// Whether the memory that is free holds all sides' processes.
[[nodiscard]] bool fits(const ClusterShape& shape);

// The raw side first. `quick`: one step a round. Throws std::runtime_error when a side does not
// come to what it should.
[[nodiscard]] std::vector<Side> measure_sides(const ClusterShape& shape, int rounds, bool quick);

}  // namespace disttf::bench
