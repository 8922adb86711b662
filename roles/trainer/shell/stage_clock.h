// How long a trainer takes for each stage of a step, of the steps that are measured
// (roles/monitor/core/step_sampling.h): in the others nothing looks at the clock.
//
// All but take() on the computing thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "math/model.h"
#include "net/transport/interrupt.h"
#include "roles/monitor/core/step_sampling.h"

namespace disttf::roles {

class StageClock final : public math::PassObserver {
 public:
  // What is told with the measured steps.
  struct Counts {
    std::uint64_t step = 0;     // of the parameters that the trainer has
    std::uint64_t pushes = 0;   // of this process
    std::uint64_t dropped = 0;  // of these: came late and were not used
  };

  // The parameters of `step` are here; the answer that brought them began to come at `came`, that
  // of `last` last. What was waited for ends there; the next step has begun.
  void answered(const Counts& counts, net::Deadline came, const LastPs& last = {}) {
    if (is_measuring_) {
      add(Stage::kWait, came - last_);
      if (came - last_ > kNoticed) {  // it was loaded in time
        sample_.of(Stage::kWait) += std::exchange(sample_.of(Stage::kOverlapped), 0.0F);
      }
      const std::scoped_lock lock(mutex_);
      samples_.add(sample_);
      counts_ = counts;
    }
    const std::scoped_lock lock(mutex_);
    is_measuring_ = samples_.wants(counts.step);
    if (is_measuring_) {
      sample_ = {.step = counts.step, .seconds = {}, .last_ps = last};
      last_ = came;
      mark(Stage::kPull);
    }
  }
  // What was done since the last mark was this.
  void mark(Stage stage) {
    if (is_measuring_) {
      const net::Deadline now = net::Clock::now();
      add(stage, now - last_);
      last_ = now;
    }
  }
  // The step under way is not one of those that count: the run was set back.
  void give_up() noexcept { is_measuring_ = false; }
  [[nodiscard]] bool is_measuring() const noexcept { return is_measuring_; }

  void went_forward() noexcept override { mark(Stage::kForward); }
  void went_back() noexcept override { mark(Stage::kBackward); }

  // Of the steps since the last call, and where the last of them has brought the trainer. From any
  // thread.
  [[nodiscard]] std::vector<TrainerSample> take(Counts& counts) {
    const std::scoped_lock lock(mutex_);
    counts = counts_;
    return samples_.take();
  }

 private:
  // An answer that is noticed so soon after something else was done may have been there before.
  static constexpr std::chrono::microseconds kNoticed{50};

  void add(Stage stage, net::Clock::duration time) {
    sample_.of(stage) += std::max(0.0F, std::chrono::duration<float>(time).count());
  }

  bool is_measuring_ = false;
  TrainerSample sample_;  // of the step under way
  net::Deadline last_{};  // mark
  std::mutex mutex_;      // guards all below
  StepSamples<TrainerSample> samples_;
  Counts counts_;
};

}  // namespace disttf::roles
