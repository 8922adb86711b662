#include "bench/sides.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace disttf::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

// The time of one side before the next side's turn: long enough that the cores are awake for most
// of it.
constexpr std::chrono::milliseconds kRound{100};

// Returns microseconds per step.
double run_round(const Runner& runner, bool quick) {
  const auto begin = Clock::now();
  std::size_t steps = 0;
  do {
    runner.step();
    ++steps;
  } while (!quick && Clock::now() - begin < kRound);
  return Microseconds(Clock::now() - begin).count() / static_cast<double>(steps);
}

// Returns the bytes that a process may take without causing another process to lose memory.
std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::size_t kibibytes = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kibibytes) {
      return kibibytes * 1024;
    }
  }
  return std::numeric_limits<std::size_t>::max();  // unknown: the kernel decides
}

}  // namespace

Figure Side::figure(const std::string& own_name, const std::string& floor) const {
  return {.name = own_name,
          .median = median(times),
          .slowest = *std::ranges::max_element(times),
          .unit = "us",
          .floor = to_raw.empty() ? "" : floor,
          .ratio = to_raw.empty() ? std::nullopt : std::optional(median(to_raw)),
          .extras = {}};
}

bool fits(const ClusterShape& shape) {
  constexpr std::size_t kCopies = 16;  // thirteen, and room for temporary copies
  return math::layout_of(shape.model).size() * sizeof(float) * kCopies <= available_memory();
}

std::vector<Side> measure_sides(const ClusterShape& shape, int rounds, bool quick) {
  RawExchange raw(shape);
  Exchange tcp(shape, roles::Transport::kTcp);
  Exchange shared_memory(shape, roles::Transport::kSharedMemory);
  return measure_in_turn(
      {runner_of("raw", raw), runner_of("tcp", tcp), runner_of("shm", shared_memory)}, rounds,
      quick);
}

std::vector<Side> measure_in_turn(const std::vector<Runner>& runners, int rounds, bool quick) {
  std::vector<Side> sides;
  for (const Runner& runner : runners) {
    sides.push_back({.name = runner.name, .times = {}, .to_raw = {}});
    runner.step();  // touches memory for the first time
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < runners.size(); ++turn) {
      // Rotating the order cancels effects of the previous side on the caches.
      const std::size_t side = (static_cast<std::size_t>(round) + turn) % runners.size();
      sides[side].times.push_back(run_round(runners[side], quick));
    }
    for (std::size_t side = 1; side < sides.size(); ++side) {
      // Ratios within a round: other load on the machine affects both sides alike.
      sides[side].to_raw.push_back(sides[side].times.back() / sides.front().times.back());
    }
  }
  for (const Runner& runner : runners) {
    if (const auto fault = runner.fault()) {
      throw std::runtime_error(std::string(runner.name) + ": " + *fault);
    }
  }
  return sides;
}

}  // namespace disttf::bench
