// The step policy of runs with backup workers: a step uses the first `replicas_to_aggregate`
// gradients that arrive. Later ones are dropped, and the answer tells their trainers.
//
// The gradients of a step are added as a tree over the ranks, without the missing ones
// (math/tree_sum.h). A gradient is identified by (step, trainer).
#include <algorithm>
#include <utility>

#include "roles/ps/core/synchronous_policy.h"

namespace disttf::roles {
namespace {

class BackupWorkers final : public SynchronousPolicy {
 public:
  BackupWorkers(const RunConfig& config, std::size_t floats)
      : SynchronousPolicy(config, floats, config.trainers, config.replicas_to_aggregate),
        used_(config.trainers) {}

  [[nodiscard]] std::span<float> inbox_of(const PushId& push) override {
    return slots().memory_of(push.trainer);
  }
  void step_made(std::uint64_t step, std::span<const std::uint64_t> trainers) override {
    SynchronousPolicy::step_made(step, trainers);
    for (std::size_t rank = 0; rank < used_.size(); ++rank) {
      if ((trainers[rank / 64] & net::in_set(rank)) != 0) {
        used_[rank] = step;
      }
    }
  }
  // The gradients of the incomplete step are dropped: their trainers are answered at once, and may
  // then overwrite the memory in which the gradients lie.
  std::size_t conclude() override {
    const std::size_t dropped = slots().filled();
    for (std::size_t rank = 0; rank < used_.size(); ++rank) {
      trainers()[rank].is_dropped = trainers()[rank].is_dropped || slots().is_filled(rank);
    }
    SynchronousPolicy::conclude();
    return dropped;
  }
  void restored(std::uint64_t step) override {
    SynchronousPolicy::restored(step);
    std::ranges::fill(used_, 0);
  }
  [[nodiscard]] std::vector<TrainerIdentity> identity() const override {
    std::vector<TrainerIdentity> identity;
    for (const std::uint64_t used : used_) {
      identity.push_back({.used = used});
    }
    return identity;
  }
  void identify(std::span<const TrainerIdentity> trainers) override {
    SynchronousPolicy::identify(trainers);
    std::ranges::transform(trainers, used_.begin(), &TrainerIdentity::used);
  }

 private:
  [[nodiscard]] bool is_repeat(const PushId& push, const StepState& /*now*/) const override {
    return push.step < trainers()[push.trainer].settled;
  }
  // (A copy learns here of a gradient that came too late at the primary.)
  [[nodiscard]] bool repeats_dropped(const PushId& push, const StepState& now) const override {
    return (push.step < now.step || now.is_concluded) && used_[push.trainer] != push.step + 1;
  }
  std::size_t add(const PushId& push, LentGradient lent) override {
    return push.in_place ? slots().add_lent(push.trainer, std::move(lent))
                         : slots().add(push.trainer);
  }

  // By rank: one more than the newest step that used a gradient of the trainer. A trainer repeats
  // only its last step, so this suffices to tell whether a settled gradient was used.
  std::vector<std::uint64_t> used_;
};

}  // namespace

std::unique_ptr<StepPolicy> make_backup_workers(const RunConfig& config, std::size_t floats) {
  return std::make_unique<BackupWorkers>(config, floats);
}

}  // namespace disttf::roles
