// When gradients arrive and how long updates take, for the measured steps of a range
// (run/monitor/core/step_sampling.h). Allocates nothing after construction.
//
//   began() -> arrived() of each trainer -> making() -> made(), when the next one begins
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "run/monitor/core/step_sampling.h"
#include "run/task.h"

namespace disttf::roles {

class StepTimes {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StepTimes(std::size_t trainers) : sample_(blank(trainers)), samples_(blank(trainers)) {}

  // A gradient of the step that begins at the parameters `step` is complete.
  void arrived(std::size_t rank, std::uint64_t step, Clock::time_point now) {
    if (is_measured_ && sample_.step == step) {
      sample_.arrived[rank] = seconds(now - began_);
    }
  }
  // The update that ended `step` began at `now`, and is done. If is_awaited(), made() is to be
  // called with the time of its end.
  void making(std::uint64_t step, std::uint64_t next, Clock::time_point now) {
    making_since_ = now;
    next_ = next;
    is_measured_ = is_measured_ && sample_.step == step;
    is_awaited_ = is_measured_ || samples_.wants(next);
  }
  [[nodiscard]] bool is_awaited() const noexcept { return is_awaited_; }
  void made(Clock::time_point now) {
    if (!std::exchange(is_awaited_, false)) {
      return;
    }
    if (is_measured_) {
      sample_.apply = seconds(now - making_since_);
      sample_.waited = seconds(making_since_ - began_);
      samples_.add(sample_);
    }
    is_measured_ = samples_.wants(next_);
    if (is_measured_) {
      began_ = now;
      sample_.step = next_;
      sample_.began = std::chrono::nanoseconds(now.time_since_epoch()).count();
      std::fill(sample_.arrived.begin(), sample_.arrived.end(), -1.0F);
    }
  }
  [[nodiscard]] std::vector<RangeSample> take() { return samples_.take(); }
  // See StepSamples.
  void trace(const StepWindow& window) { samples_.trace(window); }
  [[nodiscard]] std::vector<RangeSample> take_traced(std::size_t most) {
    return samples_.take_traced(most);
  }
  [[nodiscard]] bool all_traced_taken() const noexcept { return samples_.all_traced_taken(); }

 private:
  static RangeSample blank(std::size_t trainers) {
    return {.step = 0, .apply = 0, .arrived = std::vector<float>(trainers, -1.0F)};
  }
  static float seconds(Clock::duration duration) {
    return std::chrono::duration<float>(duration).count();
  }

  RangeSample sample_;  // of the current step, if it is measured
  bool is_measured_ = false;
  bool is_awaited_ = false;
  Clock::time_point began_{};
  Clock::time_point making_since_{};
  std::uint64_t next_ = 0;
  StepSamples<RangeSample> samples_;
};

}  // namespace disttf::roles
