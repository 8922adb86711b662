// The step policy of elastic runs: a step uses one gradient of every micro-batch. Any trainer may
// send it, as all compute bit-identical gradients of a micro-batch; the first to arrive counts.
// Which trainer computes what: micro_batch_scheduler.h.
//
// A gradient is identified by (step, micro-batch). Elastic runs have no copies.
#include <utility>

#include "roles/ps/core/synchronous_policy.h"

namespace disttf::roles {
namespace {

class Elastic final : public SynchronousPolicy {
 public:
  // There may be fewer micro-batches than trainers.
  Elastic(const RunConfig& config, std::size_t floats)
      : SynchronousPolicy(config, floats, config.micro_batches, config.micro_batches) {}

  [[nodiscard]] std::optional<std::string> refusal(const PushId& push,
                                                   const StepState& now) const override {
    std::optional<std::string> refusal = SynchronousPolicy::refusal(push, now);
    if (!refusal && push.micro_batch >= slots().size()) {
      refusal = "a gradient of micro-batch " + std::to_string(push.micro_batch) +
                " came, a step has " + std::to_string(slots().size());
    }
    return refusal;
  }
  // Two trainers may be sending the same micro-batch, so neither writes into its slot.
  [[nodiscard]] std::span<float> inbox_of(const PushId& push) override {
    return slots().inbox_of(push.trainer);
  }

 private:
  // Any trainer may send a micro-batch, so the slot decides, not the trainer.
  [[nodiscard]] bool is_repeat(const PushId& push, const StepState& now) const override {
    return push.step < now.step || slots().is_filled(push.micro_batch);
  }
  std::size_t add(const PushId& push, LentGradient lent) override {
    return push.in_place ? slots().add_lent(push.micro_batch, std::move(lent))
                         : slots().add_from_inbox(push.micro_batch, push.trainer);
  }
  [[nodiscard]] bool is_in_step(std::size_t /*rank*/) const override { return false; }
};

}  // namespace

std::unique_ptr<StepPolicy> make_elastic(const RunConfig& config, std::size_t floats) {
  return std::make_unique<Elastic>(config, floats);
}

}  // namespace disttf::roles
