// How long to wait before the next attempt: exponential with full jitter, so that a hundred
// workers that lost the same ps do not come back in the same millisecond.
//
// A pure function of the engine and the number of calls. Not thread-safe.
#pragma once

#include <chrono>
#include <random>

namespace disttf::net {

class Backoff {
 public:
  // The ceiling of the first delay: a task that starts a moment later is met at once.
  static constexpr std::chrono::milliseconds kFirst{50};
  // The ceiling of all later ones: what a peer's return may cost at most in idle time.
  static constexpr std::chrono::milliseconds kLongest{2000};

  // `engine` is to be seeded at random, differently in each process.
  explicit Backoff(std::mt19937_64 engine) noexcept : engine_(engine) {}

  // Uniform in [1 ms, ceiling]; the ceiling starts at kFirst and doubles up to kLongest.
  [[nodiscard]] std::chrono::milliseconds next();
  // After a success: the next failure starts at kFirst again.
  void reset() noexcept { ceiling_ = kFirst; }

 private:
  std::mt19937_64 engine_;
  std::chrono::milliseconds ceiling_ = kFirst;
};

}  // namespace disttf::net
