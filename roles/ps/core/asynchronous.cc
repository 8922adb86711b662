// The step policy of asynchronous runs: each gradient is a step, applied at once. (incarnation,
// sequence) makes it exactly once across retries.
//
// With `max_staleness` the answer to a trainer that is too far ahead of the slowest one is held
// back: staleness_clocks.h.
#include <algorithm>
#include <utility>

#include "math/aligned.h"
#include "net/wire/replication.h"
#include "roles/ps/core/staleness_clocks.h"
#include "roles/ps/core/step_policy.h"

namespace disttf::roles {
namespace {

class Asynchronous final : public StepPolicy {
 public:
  Asynchronous(const RunConfig& config, std::size_t floats)
      : floats_(floats),
        may_be_behind_(config.ps_replicas > 1),
        trainers_(config.trainers),
        clocks_(config.trainers, config.max_staleness),
        sender_(net::rank_set_size(config.trainers)) {}

  // A copy that has become the primary may lack updates that a trainer has seen but that were never
  // acknowledged.
  [[nodiscard]] std::optional<std::string> refusal(const PushId& push,
                                                   const StepState& now) const override {
    return may_be_behind_ ? std::nullopt : refusal_if_ahead(push, now);
  }
  Fate arrive(const PushId& push, const StepState& now) override {
    Trainer& trainer = trainers_[push.trainer];
    // (Pushes of an older process do not arrive: its connections were closed.)
    if (push.incarnation == trainer.incarnation && push.sequence <= trainer.last_sequence) {
      trainer.is_dropped = false;
      return Fate::kRepeat;
    }
    if (is_over(now)) {
      trainer.is_dropped = true;
      return Fate::kAfterEnd;
    }
    return Fate::kCounts;
  }
  [[nodiscard]] std::span<float> inbox_of(const PushId& push) override {
    math::AlignedVector& inbox = trainers_[push.trainer].inbox;
    if (inbox.size() != floats_) {
      inbox = math::AlignedVector(floats_);
    }
    return inbox.span();
  }
  // (A repeat cannot overtake its original: the trainer's older connection is closed first.)
  [[nodiscard]] bool uses(const PushId& /*push*/, const StepState& now) const override {
    return !is_over(now);
  }
  Committed commit(const PushId& push, LentGradient lent, const StepState& now) override {
    if (is_over(now)) {
      trainers_[push.trainer].is_dropped = true;
      return {.fate = Fate::kAfterEnd};
    }
    const std::uint64_t staleness = follow(push, now);
    lent_ = std::move(lent);
    std::ranges::fill(sender_, 0);
    sender_[push.trainer / 64] = net::in_set(push.trainer);
    const std::span<const float> gradient = push.in_place ? lent_.gradient : inbox_of(push);
    return {.staleness = staleness,
            .step = StepGradients{
                .sum = {.sum = gradient, .last = {}}, .count = 1, .trainers = sender_}};
  }

  void step_made(std::uint64_t /*step*/, std::span<const std::uint64_t> /*trainers*/) override {
    lent_ = {};
  }
  [[nodiscard]] bool is_answerable(std::size_t trainer, const StepState& /*now*/) const override {
    return !clocks_.is_held(trainer);
  }
  [[nodiscard]] bool is_dropped(std::size_t trainer) const override {
    return trainers_[trainer].is_dropped;
  }
  [[nodiscard]] std::uint64_t releases(const StepState& now) const noexcept override {
    return clocks_.releases() + (now.is_finished ? 1 : 0);
  }
  void join(std::size_t trainer) override { clocks_.join(trainer); }
  void leave(std::size_t trainer) override { clocks_.leave(trainer); }
  [[nodiscard]] std::uint64_t counts_from(std::size_t trainer) const override {
    return clocks_.counts_from(trainer);
  }
  [[nodiscard]] bool has_applied(std::size_t trainer, std::uint64_t incarnation,
                                 std::uint64_t sequence) const override {
    return trainers_[trainer].incarnation == incarnation &&
           trainers_[trainer].last_sequence >= sequence;
  }

  void restored(std::uint64_t /*step*/) override {
    for (Trainer& trainer : trainers_) {
      trainer.is_dropped = false;
      // No process has the incarnation 0, so no push counts as a repeat after a restore.
      trainer.incarnation = 0;
      trainer.last_sequence = 0;
    }
  }
  [[nodiscard]] std::vector<TrainerIdentity> identity() const override {
    std::vector<TrainerIdentity> identity;
    for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
      identity.push_back({.incarnation = trainers_[rank].incarnation,
                          .last_sequence = trainers_[rank].last_sequence,
                          .clock = clocks_.clock(rank)});
    }
    return identity;
  }
  void identify(std::span<const TrainerIdentity> trainers) override {
    for (std::size_t rank = 0; rank < trainers.size(); ++rank) {
      trainers_[rank].incarnation = trainers[rank].incarnation;
      trainers_[rank].last_sequence = trainers[rank].last_sequence;
      clocks_.set(rank, trainers[rank].clock);
    }
  }
  std::uint64_t follow(const PushId& push, const StepState& now) override {
    Trainer& trainer = trainers_[push.trainer];
    trainer.is_dropped = false;
    trainer.incarnation = push.incarnation;
    trainer.last_sequence = push.sequence;
    // Repeats have been excluded before this: a clock must count each push once.
    clocks_.set(push.trainer, push.sequence);
    // After a failover the trainer's step may be ahead of this copy.
    return now.step >= push.step ? now.step - push.step : 0;
  }

 private:
  struct Trainer {
    math::AlignedVector inbox;  // [floats_]; empty until something is received
    std::uint64_t incarnation = 0;
    std::uint64_t last_sequence = 0;  // the newest push applied
    bool is_dropped = false;          // the newest gradient came after the end
  };

  [[nodiscard]] static bool is_over(const StepState& now) noexcept {
    return now.is_concluded || now.is_finished;
  }

  std::size_t floats_;
  bool may_be_behind_;
  std::vector<Trainer> trainers_;  // by rank
  StalenessClocks clocks_;
  LentGradient lent_;    // the gradient that the current step is made from, if it is lent
  net::RankSet sender_;  // of that gradient
};

}  // namespace

std::unique_ptr<StepPolicy> make_asynchronous(const RunConfig& config, std::size_t floats) {
  return std::make_unique<Asynchronous>(config, floats);
}

}  // namespace disttf::roles
