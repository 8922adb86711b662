// The choice of measured steps, and the measures: every step of a slow run, every 2nd, 4th, 8th ...
// of a fast one, so that the reports of each second stay small. Tasks choose independently, and
// still match: measured steps are multiples of a power of two, so of two tasks the one that
// measures less measures a subset of the other's steps.
//
// Values; not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace disttf::roles {

// The stages of a trainer's step, in order. The step begins when a ps has sent the parameters of
// the step.
enum class Stage : std::uint8_t {
  kPull,       // parameters arrive
  kLoad,       // rows are put into the batch, and the next ones requested
  kForward,    // up to the loss
  kBackward,   // up to the gradient
  kPush,       // the gradient is sent
  kWait,       // for the other trainers and the ps
  kOverlapped  // upper bound of the part of kWait in which the next batch was loaded
};
inline constexpr std::size_t kStages = 7;
inline constexpr std::array<std::string_view, kStages> kStageNames = {
    "pull", "load", "forward", "backward", "push", "wait", "overlapped"};

// Seconds of each stage.
using StageSeconds = std::array<float, kStages>;

// Consecutive steps to be reported completely, for a timeline (run/monitor/core/trace.h).
struct StepWindow {
  // A longer timeline would be no easier to read.
  static constexpr std::uint64_t kMost = 1000;

  std::uint64_t from = 0;
  std::uint64_t count = 0;  // 0: none

  [[nodiscard]] bool has(std::uint64_t step) const noexcept {
    return step >= from && step - from < count;
  }
  [[nodiscard]] std::uint64_t end() const noexcept { return from + count; }
  friend bool operator==(const StepWindow&, const StepWindow&) = default;
};

// The distance of measured steps.
class StepSampling {
 public:
  // The most steps measured between two calls of rest().
  static constexpr std::size_t kMost = 64;

  [[nodiscard]] bool wants(std::uint64_t step) const noexcept { return (step & mask_) == 0; }
  // The limit is reached: halves the number of measured steps.
  void thin() noexcept { mask_ = mask_ << 1U | 1U; }
  // `taken` steps were measured since the last call: if these are few, measures more.
  void rest(std::size_t taken) noexcept {
    if (taken < kMost / 4) {
      mask_ >>= 1U;
    }
  }

 private:
  std::uint64_t mask_ = 0;
};

// The newest measured steps of one task, which another thread or function takes periodically.
template <typename Sample>  // has a `step`
class StepSamples {
 public:
  // `blank`: the initial value of each sample; add() allocates nothing if its capacity suffices.
  explicit StepSamples(const Sample& blank = {}) : samples_(StepSampling::kMost, blank) {}

  [[nodiscard]] bool wants(std::uint64_t step) const noexcept {
    return sampling_.wants(step) || window_.has(step);
  }
  // Measures all steps of the window as well, and keeps them for take_traced(). A repeated call
  // with the same window changes nothing.
  void trace(const StepWindow& window) {
    if (window != window_) {
      window_ = window;
      traced_.clear();
      next_traced_ = 0;
    }
  }
  // Adds a sample. A full buffer first drops every second one.
  void add(const Sample& sample) {
    // A run that was rolled back repeats steps: keeps no more than the window has.
    if (window_.has(sample.step) && traced_.size() < window_.count) {
      traced_.push_back(sample);
    }
    if (count_ == samples_.size()) {
      forget_some();
    }
    if (sampling_.wants(sample.step)) {
      samples_[count_++] = sample;
    }
  }
  // Takes the samples. To be called about once a second.
  [[nodiscard]] std::vector<Sample> take() {
    std::vector<Sample> taken(samples_.begin(),
                              samples_.begin() + static_cast<std::ptrdiff_t>(count_));
    count_ = 0;
    sampling_.rest(taken.size());
    return taken;
  }

  // Takes the next samples of the window, at most `most`.
  [[nodiscard]] std::vector<Sample> take_traced(std::size_t most) {
    const auto begin = traced_.begin() + static_cast<std::ptrdiff_t>(next_traced_);
    const std::size_t count = std::min(most, traced_.size() - next_traced_);
    next_traced_ += count;
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  // Whether all samples of the window have been taken.
  [[nodiscard]] bool all_traced_taken() const noexcept { return next_traced_ == traced_.size(); }

 private:
  void forget_some() {
    sampling_.thin();
    std::size_t kept = 0;
    for (std::size_t each = 0; each < count_; ++each) {
      if (sampling_.wants(samples_[each].step)) {
        std::swap(samples_[kept++], samples_[each]);
      }
    }
    // Drops all if none was dropped: a run that was rolled back repeats the same step.
    count_ = kept == samples_.size() ? 0 : kept;
  }

  StepSampling sampling_;
  std::vector<Sample> samples_;  // the first count_ of them
  std::size_t count_ = 0;
  StepWindow window_;
  std::vector<Sample> traced_;
  std::size_t next_traced_ = 0;
};

// Which ps's parameters arrived last at a trainer, and how long after all others. 0 for a single
// ps, and if the trainer was busy when they arrived.
struct LastPs {
  std::uint32_t index = 0;
  float seconds = 0;
  friend bool operator==(const LastPs&, const LastPs&) = default;
};

// One step of a trainer.
struct TrainerSample {
  std::uint64_t step = 0;  // of its parameters
  StageSeconds seconds{};
  LastPs last_ps = {};
  // By the task's steady clock, in nanoseconds: when the answer with the parameters began to
  // arrive.
  std::int64_t began = 0;
  [[nodiscard]] float& of(Stage stage) { return seconds[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] float of(Stage stage) const { return seconds[static_cast<std::size_t>(stage)]; }
  friend bool operator==(const TrainerSample&, const TrainerSample&) = default;
};

// One step of a range of a ps.
struct RangeSample {
  std::uint64_t step = 0;      // of the parameters used by the trainers
  float apply = 0;             // seconds of the update
  std::vector<float> arrived;  // by rank: seconds from when these parameters were ready until the
                               // trainer's gradient was complete; below 0: it has not arrived
  // By the ps's steady clock, in nanoseconds: when these parameters were ready to be sent.
  std::int64_t began = 0;
  float waited = 0;  // seconds from then until the update began
  friend bool operator==(const RangeSample&, const RangeSample&) = default;
};

}  // namespace disttf::roles
