// Which steps are measured, and what was measured of them: every one of a slow run, every 2nd, 4th,
// 8th ... of a fast one, so that what is told once a second stays small. Tasks choose alone, and
// meet: the steps that one measures are multiples of a power of two, so of two tasks the one that
// measures less measures what the other does.
//
// Values; not thread-safe.
#pragma once

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
  kLoad,       // rows are put into the batch
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

  [[nodiscard]] bool wants(std::uint64_t step) const noexcept { return sampling_.wants(step); }
  // Before one that is full is added to, every second one is forgotten.
  void add(const Sample& sample) {
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
  friend bool operator==(const RangeSample&, const RangeSample&) = default;
};

}  // namespace disttf::roles
