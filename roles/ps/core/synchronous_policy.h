// What the synchronous step policies (step_policy.h) have in common: the gradients of the step that
// is being collected, and which step each trainer has pushed for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/replication.h"
#include "roles/ps/core/gradient_slots.h"
#include "roles/ps/core/step_policy.h"

namespace disttf::roles {

class SynchronousPolicy : public StepPolicy {
 public:
  // `slots`: of a step, of which `wanted` are to be filled.
  SynchronousPolicy(const RunConfig& config, std::size_t floats, std::size_t slots,
                    std::size_t wanted);

  [[nodiscard]] std::optional<std::string> refusal(const PushId& push,
                                                   const StepState& now) const override;
  Fate arrive(const PushId& push, const StepState& now) final;
  [[nodiscard]] bool uses(const PushId& push, const StepState& now) const final {
    return fate_of(push, now) == Fate::kCounts;
  }
  Committed commit(const PushId& push, LentGradient lent, const StepState& now) final;

  void step_made(std::uint64_t /*step*/, std::span<const std::uint64_t> /*trainers*/) override {
    slots_.clear();
  }
  [[nodiscard]] std::size_t wanted() const noexcept final { return wanted_; }
  [[nodiscard]] std::vector<std::size_t> missing() const final { return slots_.missing(); }
  [[nodiscard]] std::size_t lacks() const noexcept final { return wanted_ - slots_.filled(); }
  std::size_t conclude() override;
  // Answerable once the step that the newest push was computed for has been made.
  [[nodiscard]] bool is_answerable(std::size_t trainer, const StepState& now) const final {
    return trainers_[trainer].last_step < now.step;
  }
  [[nodiscard]] bool is_dropped(std::size_t trainer) const final {
    return trainers_[trainer].is_dropped;
  }

  void restored(std::uint64_t step) override;
  [[nodiscard]] std::vector<TrainerIdentity> identity() const override {
    return std::vector<TrainerIdentity>(trainers_.size());
  }
  void identify(std::span<const TrainerIdentity> trainers) override;
  std::uint64_t follow(const PushId& push, const StepState& now) final;

 protected:
  struct Trainer {
    std::uint64_t last_step = 0;  // of its newest push
    std::uint64_t settled = 0;    // gradients of steps before this one are used or dropped
    bool is_dropped = false;      // the newest gradient came too late
  };

  // Returns whether the push brings nothing that has not arrived before; whether it repeats a
  // gradient that was dropped.
  [[nodiscard]] virtual bool is_repeat(const PushId& push, const StepState& now) const = 0;
  [[nodiscard]] virtual bool repeats_dropped(const PushId& /*push*/,
                                             const StepState& /*now*/) const {
    return false;
  }
  // Adds a gradient that counts. Returns how many slots it has filled.
  virtual std::size_t add(const PushId& push, LentGradient lent) = 0;
  // Returns whether the complete step uses a gradient that is the trainer's.
  [[nodiscard]] virtual bool is_in_step(std::size_t rank) const { return slots_.is_filled(rank); }

  [[nodiscard]] std::vector<Trainer>& trainers() noexcept { return trainers_; }
  [[nodiscard]] const std::vector<Trainer>& trainers() const noexcept { return trainers_; }
  [[nodiscard]] GradientSlots& slots() noexcept { return slots_; }
  [[nodiscard]] const GradientSlots& slots() const noexcept { return slots_; }

 private:
  [[nodiscard]] Fate fate_of(const PushId& push, const StepState& now) const;
  // Records that the gradient was not used, if so.
  void drop(const PushId& push, Fate fate, const StepState& now);

  std::size_t wanted_;
  std::vector<Trainer> trainers_;  // by rank
  GradientSlots slots_;
  net::RankSet in_step_;  // the trainers of the step that is complete
};

}  // namespace disttf::roles
