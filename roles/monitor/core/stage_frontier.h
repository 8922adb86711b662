// Who holds a step up, and by what. Each task tells how long it took for each stage of some steps,
// by its own clock; no two clocks are compared.
//
// A step's frontier, at the end of a stage, is how long the task took up to there that took
// longest. What the frontier grows by from one stage to the next is that stage's share, and that
// task's doing: the shares add up to the whole step, which means or maxima of each stage do not.
// (StageFrontier, arXiv 2606.06751.)
//
//   pull, load, forward, backward   as the trainer tells them
//   push      up to when the gradient was whole at the ps, as that tells: what of this the trainer
//             did not see was spent on the way. What all trainers share of that is the ps's
//   apply     of the ps
//
// A ps counts the way from when its own parameters were there. While a trainer waits for those of
// another ps that is not the way to this one: each trainer tells how long it waited for the last ps
// alone, and the ways to all others are that much shorter. A ps reads gradients one after the
// other: one that comes in behind another may be late by as much as the first took, and that is the
// ps's.
//
// Who is slow is judged by the means of many steps, the ways' too: whom a stall of a ps meets is
// chance, and so nobody's doing but the ps's once it has met all.
//
// Where trainers do not wait for each other (async) there is no common step: the same is made of
// the means of the newest steps of each.
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

#include "roles/monitor/core/step_sampling.h"

namespace disttf::roles {

// Of a step's frontier.
enum class FrontierStage : std::uint8_t {
  kPull,
  kLoad,
  kForward,
  kBackward,
  kPush,
  kReceive,
  kApply
};
inline constexpr std::size_t kFrontierStages = 7;
inline constexpr std::array<std::string_view, kFrontierStages> kFrontierStageNames = {
    "pull", "load", "forward", "backward", "push", "receive", "apply"};

struct Frontier {
  struct Share {
    FrontierStage stage = FrontierStage::kPull;
    bool is_ps = false;     // whose doing: the ps's, or the trainer's
    std::size_t index = 0;  // of the ps; a trainer's rank
    double seconds = 0;     // of a step, in the mean
  };
  struct Slowest {
    bool is_ps = false;
    std::size_t index = 0;
    FrontierStage stage = FrontierStage::kPull;
    double slower = 0;   // 0.41: takes 41 % longer than the median of the others
    double seconds = 0;  // that each step would take less without
    // There is one ps: it is compared with its own fastest steps, as there are no others.
    bool is_alone = false;
  };
  std::uint64_t step = 0;     // the newest that it is made of
  std::size_t steps = 0;      // how many
  double step_seconds = 0;    // of one, in the mean
  std::vector<Share> shares;  // the largest first; their seconds add up to step_seconds
  std::optional<Slowest> slowest;
};

class StageFrontier {
 public:
  // Steps that are looked at, at most: of each task the newest.
  static constexpr std::size_t kWindow = 128;
  // Less is no difference: machines are no more even than that.
  static constexpr double kLeastSlower = 0.1;

  StageFrontier(std::size_t trainers, std::size_t ps, bool is_sync);

  // What a task has told. REQUIRES: below `trainers`, `ps`.
  void trainer_told(std::size_t rank, std::span<const TrainerSample> samples);
  void ps_told(std::size_t index, std::span<const RangeSample> samples);
  // The state was replaced: steps are made again, by others perhaps.
  void set_back();

  // About once a second, after what was told. nullopt: nothing that all tell of is known yet.
  [[nodiscard]] std::optional<Frontier> take();

 private:
  struct Trainer {
    std::deque<TrainerSample> samples;
    std::size_t silent = 0;  // rounds since it told something
  };
  struct Ps {
    std::deque<RangeSample> samples;
    double least = 0;  // of what it takes of a step, in any window so far; 0: not known
  };
  // What one trainer took up to its gradient's arrival, in seconds: of one step, or in the mean.
  struct Taken {
    std::size_t rank = 0;
    std::array<double, kFrontierStages> seconds{};
    [[nodiscard]] double total() const;
  };
  // A step as it was told, or the mean of several: nothing of the ways is anybody's yet.
  struct Told {
    std::vector<Taken> trainers;
    std::vector<double> overlapped;         // by trainer, as above
    std::vector<std::vector<double>> ways;  // by ps, by trainer
    std::vector<double> apply;              // by ps
  };
  struct Step {
    std::vector<Taken> trainers;
    std::vector<double> receive;  // by ps: of the way to it what all trainers share
    std::vector<double> apply;    // by ps
  };

  [[nodiscard]] bool is_here(const Trainer& trainer) const;
  [[nodiscard]] std::vector<Told> steps_of_all(std::uint64_t& newest) const;
  [[nodiscard]] std::optional<Told> told_of(std::uint64_t step) const;
  [[nodiscard]] std::vector<Told> mean_step(std::uint64_t& newest) const;
  [[nodiscard]] static Told mean_of(std::span<const Told> steps);
  // Whose doing each way was.
  [[nodiscard]] static Step shared_out(Told told);
  void add_shares(const Step& step, Frontier& frontier) const;
  [[nodiscard]] std::optional<Frontier::Slowest> slowest(const Step& mean, double step_seconds);
  [[nodiscard]] std::optional<Frontier::Slowest> slowest_trainer(const Step& mean) const;
  [[nodiscard]] std::optional<Frontier::Slowest> slowest_ps(const Step& mean, double step_seconds);

  const bool is_sync_;
  std::vector<Trainer> trainers_;  // by rank
  std::vector<Ps> ps_;
};

}  // namespace disttf::roles
