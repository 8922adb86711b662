// The step policy of fully synchronous runs: a step uses one gradient of every trainer.
//
// Gradients are added as a tree over the ranks, whatever the order of arrival (math/tree_sum.h). A
// gradient is identified by (step, trainer): a repeat is answered, but never added twice.
//
// A push may be the sum of a subtree (PushId::summed), bit-identical to what would be added here.
// The sum counts as the gradient of every trainer of the subtree, and replaces gradients of the
// subtree that have arrived before. A trainer whose gradient is in another trainer's sum waits for
// that sum.
#include <utility>

#include "roles/ps/core/synchronous_policy.h"

namespace disttf::roles {
namespace {

class EveryGradient final : public SynchronousPolicy {
 public:
  EveryGradient(const RunConfig& config, std::size_t floats)
      : SynchronousPolicy(config, floats, config.trainers, config.trainers) {}

  // A sum may arrive when its trainer's own gradient has been added already.
  [[nodiscard]] std::span<float> inbox_of(const PushId& push) override {
    return push.summed == 1 ? slots().memory_of(push.trainer) : slots().inbox_of(push.trainer);
  }

 private:
  [[nodiscard]] bool is_repeat(const PushId& push, const StepState& /*now*/) const override {
    for (std::size_t rank = push.trainer; rank < push.trainer + push.summed; ++rank) {
      if (push.step >= trainers()[rank].settled) {
        return false;
      }
    }
    return true;
  }
  std::size_t add(const PushId& push, LentGradient lent) override {
    if (push.summed != 1) {
      return push.in_place ? slots().add_lent_sum(push.trainer, push.summed, std::move(lent))
                           : slots().add_sum(push.trainer, push.summed);
    }
    return push.in_place ? slots().add_lent(push.trainer, std::move(lent))
                         : slots().add(push.trainer);
  }
};

}  // namespace

std::unique_ptr<StepPolicy> make_every_gradient(const RunConfig& config, std::size_t floats) {
  return std::make_unique<EveryGradient>(config, floats);
}

}  // namespace disttf::roles
