// Which steps are measured, and what was measured of them: every one of a slow run, every 2nd, 4th,
// 8th ... of a fast one, so that what is told once a second stays small. Tasks choose alone, and
// meet: the steps that one measures are multiples of a power of two, so of two tasks the one that
// measures less measures what the other does.
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

// What a trainer spends a step on, in this order. The step begins when a ps has sent the parameters
// that it is computed from.
enum class Stage : std::uint8_t {
  kPull,       // the parameters come
  kLoad,       // rows are put into the batch, and the next ones asked for
  kForward,    // up to the loss
  kBackward,   // up to the gradient
  kPush,       // the gradient leaves
  kWait,       // for the other trainers and the ps
  kOverlapped  // at most so much of the wait was loading: the next batch is loaded meanwhile
};
inline constexpr std::size_t kStages = 7;
inline constexpr std::array<std::string_view, kStages> kStageNames = {
    "pull", "load", "forward", "backward", "push", "wait", "overlapped"};

// Seconds of each stage.
using StageSeconds = std::array<float, kStages>;

// Steps in a row that are all to be told of, for a timeline (roles/monitor/core/trace.h).
struct StepWindow {
  // A longer timeline is no easier to read.
  static constexpr std::uint64_t kMost = 1000;

  std::uint64_t from = 0;
  std::uint64_t count = 0;  // 0: none

  [[nodiscard]] bool has(std::uint64_t step) const noexcept {
    return step >= from && step - from < count;
  }
  [[nodiscard]] std::uint64_t end() const noexcept { return from + count; }
  friend bool operator==(const StepWindow&, const StepWindow&) = default;
};

// How far apart the measured steps are.
class StepSampling {
 public:
  // Of what is measured between two calls of rest(), at most.
  static constexpr std::size_t kMost = 64;

  [[nodiscard]] bool wants(std::uint64_t step) const noexcept { return (step & mask_) == 0; }
  // There are as many as allowed: half as many are wanted from now on.
  void thin() noexcept { mask_ = mask_ << 1U | 1U; }
  // `taken` have been measured since the last call: where these are few, more are wanted.
  void rest(std::size_t taken) noexcept {
    if (taken < kMost / 4) {
      mask_ >>= 1U;
    }
  }

 private:
  std::uint64_t mask_ = 0;
};

// The newest measured steps of one task, for whoever takes them now and then.
template <typename Sample>  // has a `step`
class StepSamples {
 public:
  // `blank`: what memory for each is made of; add() allocates none where it suffices.
  explicit StepSamples(const Sample& blank = {}) : samples_(StepSampling::kMost, blank) {}

  [[nodiscard]] bool wants(std::uint64_t step) const noexcept {
    return sampling_.wants(step) || window_.has(step);
  }
  // All steps of the window are wanted, too, and kept for take_traced(). Those of the same window
  // are kept where it is told again.
  void trace(const StepWindow& window) {
    if (window != window_) {
      window_ = window;
      traced_.clear();
      next_traced_ = 0;
    }
  }
  // Before one that is full is added to, every second one is forgotten.
  void add(const Sample& sample) {
    // A run that is set back makes steps again: no more than there should be.
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
  // To be called once in a while, about once a second.
  [[nodiscard]] std::vector<Sample> take() {
    std::vector<Sample> taken(samples_.begin(),
                              samples_.begin() + static_cast<std::ptrdiff_t>(count_));
    count_ = 0;
    sampling_.rest(taken.size());
    return taken;
  }

  // Of those of the window the next ones, at most so many.
  [[nodiscard]] std::vector<Sample> take_traced(std::size_t most) {
    const auto begin = traced_.begin() + static_cast<std::ptrdiff_t>(next_traced_);
    const std::size_t count = std::min(most, traced_.size() - next_traced_);
    next_traced_ += count;
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  // All of them have been taken.
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
    // All of them, where it was the same step again and again: a run that is set back.
    count_ = kept == samples_.size() ? 0 : kept;
  }

  StepSampling sampling_;
  std::vector<Sample> samples_;  // the first count_ of them
  std::size_t count_ = 0;
  StepWindow window_;
  std::vector<Sample> traced_;
  std::size_t next_traced_ = 0;
};

// Which ps's parameters came last to a trainer, and how long after all others were there. Of one ps
// alone, and where the trainer was busy when they came: 0.
struct LastPs {
  std::uint32_t index = 0;
  float seconds = 0;
  friend bool operator==(const LastPs&, const LastPs&) = default;
};

// One step of a trainer.
struct TrainerSample {
  std::uint64_t step = 0;  // of the parameters that it was computed from
  StageSeconds seconds{};
  LastPs last_ps = {};
  // By the task's steady clock, in nanoseconds: when the answer that brought the parameters began
  // to come.
  std::int64_t began = 0;
  [[nodiscard]] float& of(Stage stage) { return seconds[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] float of(Stage stage) const { return seconds[static_cast<std::size_t>(stage)]; }
  friend bool operator==(const TrainerSample&, const TrainerSample&) = default;
};

// One step of a range of a ps.
struct RangeSample {
  std::uint64_t step = 0;      // of the parameters that trainers computed from
  float apply = 0;             // seconds that the update took
  std::vector<float> arrived;  // by rank: seconds from when these parameters were there until the
                               // trainer's gradient was whole; below 0: it has not come
  // By the ps's steady clock, in nanoseconds: when these parameters were there, not yet sent.
  std::int64_t began = 0;
  float waited = 0;  // seconds from then until the update began
  friend bool operator==(const RangeSample&, const RangeSample&) = default;
};

}  // namespace disttf::roles
