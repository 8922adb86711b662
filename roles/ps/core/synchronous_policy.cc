#include "roles/ps/core/synchronous_policy.h"

#include <algorithm>
#include <utility>

namespace disttf::roles {

SynchronousPolicy::SynchronousPolicy(const RunConfig& config, std::size_t floats, std::size_t slots,
                                     std::size_t wanted)
    : wanted_(wanted),
      trainers_(config.trainers),
      slots_(slots, config.trainers, floats, config.isa),
      in_step_(net::rank_set_size(config.trainers)) {}

std::optional<std::string> SynchronousPolicy::refusal(const PushId& push,
                                                      const StepState& now) const {
  return refusal_if_ahead(push, now);
}

Fate SynchronousPolicy::fate_of(const PushId& push, const StepState& now) const {
  if (is_repeat(push, now)) {
    return Fate::kRepeat;
  }
  if (push.step < now.step) {
    return Fate::kLate;
  }
  return now.is_concluded ? Fate::kAfterEnd : Fate::kCounts;
}

Fate SynchronousPolicy::arrive(const PushId& push, const StepState& now) {
  Trainer& trainer = trainers_[push.trainer];
  // A late duplicate of an older push must not make the newest one look answered.
  trainer.last_step = std::max(trainer.last_step, push.step);
  const Fate fate = fate_of(push, now);
  if (fate == Fate::kRepeat) {
    trainer.is_dropped = repeats_dropped(push, now);
  }
  drop(push, fate, now);
  return fate;
}

void SynchronousPolicy::drop(const PushId& push, Fate fate, const StepState& now) {
  if (fate == Fate::kLate || fate == Fate::kAfterEnd) {
    trainers_[push.trainer].is_dropped = true;
    trainers_[push.trainer].settled = (fate == Fate::kLate ? push.step : now.step) + 1;
  }
}

Committed SynchronousPolicy::commit(const PushId& push, LentGradient lent, const StepState& now) {
  const Fate fate = now.is_concluded ? Fate::kAfterEnd : fate_of(push, now);
  if (fate != Fate::kCounts) {  // overtaken while its body was being received
    drop(push, fate, now);
    return {.fate = fate};
  }
  Committed committed{.brought = add(push, std::move(lent))};
  for (std::size_t rank = push.trainer; rank < push.trainer + push.summed; ++rank) {
    trainers_[rank].is_dropped = false;
    trainers_[rank].settled = push.step + 1;
  }
  if (lacks() == 0) {
    std::ranges::fill(in_step_, 0);
    for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
      in_step_[rank / 64] |= is_in_step(rank) ? net::in_set(rank) : 0;
    }
    committed.step = slots_.gradients(in_step_);
  }
  return committed;
}

// The current step is not made: its gradients in shared memory are released.
std::size_t SynchronousPolicy::conclude() {
  slots_.clear();
  return 0;
}

// The restored parameters contain the gradients of earlier steps.
void SynchronousPolicy::restored(std::uint64_t step) {
  slots_.clear();
  std::ranges::fill(trainers_, Trainer{.last_step = step, .settled = step});
}

void SynchronousPolicy::identify(std::span<const TrainerIdentity> /*trainers*/) {
  for (Trainer& trainer : trainers_) {
    trainer.last_step = 0;  // a trainer that still waits repeats its request, which names the step
  }
}

// A gradient in the update is never needed again, so every trainer is settled up to here.
std::uint64_t SynchronousPolicy::follow(const PushId& /*push*/, const StepState& now) {
  for (Trainer& trainer : trainers_) {
    trainer.settled = now.step + 1;
  }
  return 0;
}

}  // namespace disttf::roles
