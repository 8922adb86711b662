// Finds the critical path of steps: which task delays them, and by which stage. Each task reports
// how long it took for each stage of some steps, by its own clock; clocks are not compared.
//
// A step's frontier, at the end of a stage, is the time up to there of the slowest task. Its growth
// from one stage to the next is that stage's share, attributed to that task: the shares add up to
// the whole step, which means or maxima of each stage do not. (StageFrontier, arXiv 2606.06751.)
//
//   pull, load, forward, backward   as reported by the trainer
//   push      until the gradient was complete at the ps, as reported by the ps. The part that the
//             trainer did not see is transfer time; what all trainers share of it is due to the ps
//   apply     as reported by the ps
//
// A ps counts the transfer from the time when its own parameters were ready. While a trainer waits
// for the parameters of another ps, that is no transfer to this one: each trainer reports how long
// it waited for the last ps alone, and its transfers to all others are reduced by that. A ps reads
// gradients one after the other: a gradient may be late by the time of the one before it, which is
// due to the ps.
//
// Slow tasks are found by the means of many steps, also of transfers: which trainer a stall of a ps
// hits is chance, so it is attributed to the ps once it has hit all.
//
// Where trainers do not wait for each other (async) there is no common step: the same is computed
// from the means of each task's newest steps.
//
// Values; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run/monitor/core/step_sampling.h"

namespace disttf::roles {

// The stages of a step's frontier.
enum class CriticalPathStage : std::uint8_t {
  kPull,
  kLoad,
  kForward,
  kBackward,
  kPush,
  kReceive,
  kApply
};
inline constexpr std::size_t kCriticalPathStages = 7;
inline constexpr std::array<std::string_view, kCriticalPathStages> kCriticalPathStageNames = {
    "pull", "load", "forward", "backward", "push", "receive", "apply"};

struct CriticalPath {
  struct Share {
    CriticalPathStage stage = CriticalPathStage::kPull;
    bool is_ps = false;     // due to a ps, or to a trainer
    std::size_t index = 0;  // of the ps, or the trainer's rank
    double seconds = 0;     // mean per step
  };
  struct Slowest {
    bool is_ps = false;
    std::size_t index = 0;
    CriticalPathStage stage = CriticalPathStage::kPull;
    double slower = 0;   // 0.41: takes 41 % longer than the median of the others
    double seconds = 0;  // what each step would save without
    // The only ps: compared with its own fastest steps, as there are no others.
    bool is_alone = false;
  };
  std::uint64_t step = 0;     // the newest step included
  std::size_t steps = 0;      // how many are included
  double step_seconds = 0;    // mean of a step
  std::vector<Share> shares;  // largest first; their seconds add up to step_seconds
  std::optional<Slowest> slowest;
};

class CriticalPathFinder {
 public:
  // The most steps that are considered: the newest of each task.
  static constexpr std::size_t kWindow = 128;
  // Smaller differences are noise: machines vary by that much.
  static constexpr double kLeastSlower = 0.1;

  CriticalPathFinder(std::size_t trainers, std::size_t ps, bool is_sync);

  // The reports of a task. REQUIRES: rank and index are below `trainers` and `ps`.
  void record_trainer(std::size_t rank, std::span<const TrainerSample> samples);
  void record_ps(std::size_t index, std::span<const RangeSample> samples);
  // The state was rolled back: steps are repeated, perhaps by other tasks.
  void roll_back();

  // To be called about once a second. nullopt: there is no step that all tasks have reported.
  [[nodiscard]] std::optional<CriticalPath> take();

 private:
  struct Trainer {
    std::deque<TrainerSample> samples;
    std::size_t silent = 0;  // rounds since its last report
  };
  struct Ps {
    std::deque<RangeSample> samples;
    double least = 0;  // its smallest time of a step in any window so far; 0: unknown
  };
  // A trainer's time until its gradient's arrival, in seconds: of one step, or the mean.
  struct Taken {
    std::size_t rank = 0;
    std::array<double, kCriticalPathStages> seconds{};
    [[nodiscard]] double total() const;
  };
  // A step as reported, or the mean of several: transfers are not attributed yet.
  struct ReportedStep {
    std::vector<Taken> trainers;
    std::vector<double> overlapped;         // by trainer, as above
    std::vector<std::vector<double>> ways;  // transfers, by ps and trainer
    std::vector<double> apply;              // by ps
  };
  struct Step {
    std::vector<Taken> trainers;
    std::vector<double> receive;  // by ps: the part of transfers that all trainers share
    std::vector<double> apply;    // by ps
  };

  [[nodiscard]] bool is_here(const Trainer& trainer) const;
  [[nodiscard]] std::vector<ReportedStep> steps_of_all(std::uint64_t& newest) const;
  [[nodiscard]] std::optional<ReportedStep> told_of(std::uint64_t step) const;
  [[nodiscard]] std::vector<ReportedStep> mean_step(std::uint64_t& newest) const;
  [[nodiscard]] static ReportedStep mean_of(std::span<const ReportedStep> steps);
  // Attributes each transfer.
  [[nodiscard]] static Step shared_out(ReportedStep told);
  void add_shares(const Step& step, CriticalPath& critical_path) const;
  [[nodiscard]] std::optional<CriticalPath::Slowest> slowest(const Step& mean, double step_seconds);
  [[nodiscard]] std::optional<CriticalPath::Slowest> slowest_trainer(const Step& mean) const;
  [[nodiscard]] std::optional<CriticalPath::Slowest> slowest_ps(const Step& mean,
                                                                double step_seconds);

  const bool is_sync_;
  std::vector<Trainer> trainers_;  // by rank
  std::vector<Ps> ps_;
};

}  // namespace disttf::roles
