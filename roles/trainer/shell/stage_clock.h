// The time that a trainer spends on each stage of a step, for the measured steps
// (run/monitor/core/step_sampling.h). In other steps the clock is not read.
//
// All functions but take() and trace() belong to the computing thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "math/model.h"
#include "net/waiting/interrupt.h"
#include "run/monitor/core/step_sampling.h"

namespace disttf::roles {

class StageClock final : public math::PassObserver {
 public:
  // Reported with the measured steps.
  struct Counts {
    std::uint64_t step = 0;     // of the trainer's parameters
    std::uint64_t pushes = 0;   // of this process
    std::uint64_t dropped = 0;  // of these: not used because they came too late
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
  };

  // The parameters of `step` have arrived; the answer began to arrive at `came`, that of `last`
  // last. The wait ends there, and the next step begins.
  void answered(const Counts& counts, net::Deadline came, const LastPs& last = {}) {
    if (is_measuring_) {
      add(Stage::kWait, came - last_);
      if (came - last_ > kNoticed) {  // loading had finished before the answer
        sample_.of(Stage::kWait) += std::exchange(sample_.of(Stage::kOverlapped), 0.0F);
      }
      const std::scoped_lock lock(mutex_);
      samples_.add(sample_);
      counts_ = counts;
    }
    const std::scoped_lock lock(mutex_);
    is_measuring_ = samples_.wants(counts.step);
    if (is_measuring_) {
      sample_ = {.step = counts.step, .seconds = {}, .last_ps = last, .began = ns_of(came)};
      last_ = came;
      mark(Stage::kPull);
    }
  }
  // The time since the last mark belongs to `stage`.
  void mark(Stage stage) {
    if (is_measuring_) {
      const net::Deadline now = net::Clock::now();
      add(stage, now - last_);
      last_ = now;
    }
  }
  // The current step does not count: the run was rolled back.
  void give_up() noexcept { is_measuring_ = false; }
  [[nodiscard]] bool is_measuring() const noexcept { return is_measuring_; }

  void on_forward_done() noexcept override { mark(Stage::kForward); }
  void on_backward_done() noexcept override { mark(Stage::kBackward); }

  // Returns the steps since the last call, and the counts after the last of them. Like trace(),
  // callable from any thread.
  struct Taken {
    Counts counts;
    std::vector<TrainerSample> samples;
    std::vector<TrainerSample> traced;
    bool is_all_traced = true;  // traced steps up to now
  };
  [[nodiscard]] Taken take(std::size_t most_traced) {
    const std::scoped_lock lock(mutex_);
    Taken taken{
        .counts = counts_, .samples = samples_.take(), .traced = samples_.take_traced(most_traced)};
    taken.is_all_traced = samples_.all_traced_taken();
    return taken;
  }
  // Measures each step of the window.
  void trace(const StepWindow& window) {
    const std::scoped_lock lock(mutex_);
    samples_.trace(window);
  }

 private:
  // An answer noticed this soon after other work may have arrived during that work.
  static constexpr std::chrono::microseconds kNoticed{50};

  static std::int64_t ns_of(net::Deadline time) {
    return std::chrono::nanoseconds(time.time_since_epoch()).count();
  }
  void add(Stage stage, net::Clock::duration time) {
    sample_.of(stage) += std::max(0.0F, std::chrono::duration<float>(time).count());
  }

  bool is_measuring_ = false;
  TrainerSample sample_;  // of the current step
  net::Deadline last_{};  // time of the last mark
  std::mutex mutex_;      // guards all below
  StepSamples<TrainerSample> samples_;
  Counts counts_;
};

}  // namespace disttf::roles
