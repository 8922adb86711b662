// The time to wait before the next attempt: exponential back-off with full jitter, so that a
// hundred workers that lost the same ps do not reconnect in the same millisecond.
//
// A pure function of the engine and the number of calls. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace disttf::net {

class Backoff {
 public:
  // The upper bound of the first delay: small, because a peer often starts a moment later.
  static constexpr std::chrono::milliseconds kFirst{50};
  // The upper bound of all later ones: the most idle time after a peer's return.
  static constexpr std::chrono::milliseconds kLongest{2000};

  // `engine` must be seeded at random, differently in each process.
  explicit Backoff(std::mt19937_64 engine) noexcept : engine_(engine) {}

  // Uniform in [1 ms, ceiling]; the ceiling starts at kFirst and doubles up to kLongest.
  [[nodiscard]] std::chrono::milliseconds next() {
    // Not below 1 ms: a delay of 0 would make a failing peer spin.
    std::uniform_int_distribution<std::chrono::milliseconds::rep> delay(1, ceiling_.count());
    const std::chrono::milliseconds result{delay(engine_)};
    ceiling_ = std::min(2 * ceiling_, kLongest);
    return result;
  }
  // After a success: the next failure starts at kFirst again.
  void reset() noexcept { ceiling_ = kFirst; }

 private:
  std::mt19937_64 engine_;
  std::chrono::milliseconds ceiling_ = kFirst;
};

}  // namespace disttf::net
