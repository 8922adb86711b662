// Which gradients count, and when a step is made: the rules in which the modes of training differ.
// One class for each mode; docs/extending.md says how to add one.
//   every_gradient.cc  fully synchronous: a step uses one gradient of every trainer
//   backup_workers.cc  a step uses the first N gradients that arrive (--replicas_to_aggregate)
//   elastic.cc         a step uses one gradient of every micro-batch, from any trainer
//   asynchronous.cc    each gradient is a step (--sync_replicas=false)
//
// A policy changes no parameters. The shard passes in where the run stands, counts what the policy
// returns, and makes the step that the policy returns. A policy holds the gradients of a step until
// that has been made, and what identifies repeats.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/parameter_layout.h"
#include "math/tree_sum.h"
#include "run/run_config.h"

namespace disttf::roles {

// Identifies a push, from its frame's header and its connection.
struct PushId {
  std::size_t trainer = 0;        // rank
  std::uint64_t incarnation = 0;  // of the trainer's process
  std::uint64_t step = 0;         // the step of the parameters that it was computed from
  std::uint64_t sequence = 0;     // the trainer's number of the push; see counts_from()
  bool wants_snapshot = false;    // take a snapshot of the state that this push leads to
  std::size_t micro_batch = 0;    // elastic: which one of the step
  bool in_place = false;          // the gradient is read where it lies
  // Fully synchronous: the gradient is the sum of the gradients of the `summed` trainers of a
  // subtree, of which `trainer` is the first.
  std::size_t summed = 1;
  bool is_in_sum = false;  // the push has no gradient, since another trainer's sum contains it
};

// Where the run stands.
struct StepState {
  std::uint64_t step = 0;     // the number of updates applied
  bool is_finished = false;   // no step follows
  bool is_concluded = false;  // the parameters are the run's result: Shard::conclude()
};

enum class Fate : std::uint8_t {
  kCounts,    // a step uses the gradient
  kRepeat,    // it has arrived before
  kLate,      // its step has been made without it
  kAfterEnd,  // it belongs to no step, because the run is over here
};

// A gradient that is read where it lies.
struct LentGradient {
  std::span<const float> gradient;
  std::shared_ptr<const void> memory;  // keeps it unchanged
};

// The gradients that a step is to be made from. Valid until StepPolicy::step_made().
struct StepGradients {
  math::TreeSum::Halves sum;
  std::size_t count = 0;                    // of the gradients in the sum
  std::span<const std::uint64_t> trainers;  // a net::RankSet; elastic: empty set
  math::TreeSum* tree = nullptr;            // adds the halves, if there are two
};

// What a complete gradient has led to.
struct Committed {
  Fate fate = Fate::kCounts;
  std::size_t brought = 1;      // the number of gradients that the push has brought
  std::uint64_t staleness = 0;  // async: updates by others between the trainer's read and its push
  std::optional<StepGradients> step = {};  // the step is to be made
};

// What a copy of a shard needs besides the tensors, of each trainer.
struct TrainerIdentity {
  // These identify repeats.
  std::uint64_t incarnation = 0;
  std::uint64_t last_sequence = 0;
  std::uint64_t clock = 0;  // kept across restores; after one no push counts as a repeat
  std::uint64_t used = 0;   // see net::FillTrainer
};

class StepPolicy {
 public:
  StepPolicy() = default;
  StepPolicy(const StepPolicy&) = delete;
  StepPolicy& operator=(const StepPolicy&) = delete;
  virtual ~StepPolicy() = default;

  // --- a push: in this order

  // Returns why no gradient like this can be one of the run; nullopt if it can.
  [[nodiscard]] virtual std::optional<std::string> refusal(const PushId& push,
                                                           const StepState& now) const = 0;
  // The header of the push has arrived.
  virtual Fate arrive(const PushId& push, const StepState& now) = 0;
  // Returns where to receive its gradient, if that counts and is not lent.
  [[nodiscard]] virtual std::span<float> inbox_of(const PushId& push) = 0;
  // Returns whether commit() would use the gradient: another one may have overtaken it.
  [[nodiscard]] virtual bool uses(const PushId& push, const StepState& now) const = 0;
  // The gradient is complete: in its inbox, or where it is lent (PushId::in_place).
  virtual Committed commit(const PushId& push, LentGradient lent, const StepState& now) = 0;

  // --- the step

  // Returns how many gradients a step uses.
  [[nodiscard]] virtual std::size_t wanted() const noexcept { return 1; }
  // The step that leads to the parameters of `step` has been made, from gradients of `trainers`.
  virtual void step_made(std::uint64_t step, std::span<const std::uint64_t> trainers) = 0;
  // Returns the trainers (elastic: micro-batches) whose gradient of the current step is missing, in
  // order; how many gradients the step lacks. Async: none.
  [[nodiscard]] virtual std::vector<std::size_t> missing() const { return {}; }
  [[nodiscard]] virtual std::size_t lacks() const noexcept { return 0; }
  // No further step is made. Drops gradients of the current step. Returns how many of these are to
  // be counted as dropped.
  virtual std::size_t conclude() { return 0; }

  // --- trainers

  // Returns whether the trainer's last push can be answered while further steps follow.
  [[nodiscard]] virtual bool is_answerable(std::size_t trainer, const StepState& now) const = 0;
  // Returns whether the trainer's last gradient was not used because it came too late.
  [[nodiscard]] virtual bool is_dropped(std::size_t trainer) const = 0;
  // Returns a number that changes whenever a trainer may have become answerable because of another
  // trainer's push.
  [[nodiscard]] virtual std::uint64_t releases(const StepState& now) const noexcept {
    return now.step + (now.is_concluded ? 1 : 0);
  }
  // Async: a trainer that has not joined, or has left, does not hold back others.
  virtual void join(std::size_t /*trainer*/) {}
  virtual void leave(std::size_t /*trainer*/) {}
  // Async: returns the number above which the trainer's next push is to be numbered.
  [[nodiscard]] virtual std::uint64_t counts_from(std::size_t /*trainer*/) const { return 0; }
  // Async: returns whether the push of that number, or a newer one of the same process, was
  // applied.
  [[nodiscard]] virtual bool has_applied(std::size_t /*trainer*/, std::uint64_t /*incarnation*/,
                                         std::uint64_t /*sequence*/) const {
    return false;
  }

  // --- restores and copies

  // A state of `step` has been restored: earlier pushes no longer count as repeats.
  virtual void restored(std::uint64_t step) = 0;
  // What a copy needs of each trainer, by rank; and the copy's side, after restored().
  [[nodiscard]] virtual std::vector<TrainerIdentity> identity() const = 0;
  virtual void identify(std::span<const TrainerIdentity> trainers) = 0;
  // A copy takes an update that `push` has led to at its primary; step_made() follows. Returns the
  // push's staleness.
  virtual std::uint64_t follow(const PushId& push, const StepState& now) = 0;
};

// Returns the policy of a run, one of those that follow. `floats`: of a gradient.
[[nodiscard]] std::unique_ptr<StepPolicy> make_step_policy(const RunConfig& config,
                                                           std::size_t floats);
std::unique_ptr<StepPolicy> make_every_gradient(const RunConfig& config, std::size_t floats);
std::unique_ptr<StepPolicy> make_backup_workers(const RunConfig& config, std::size_t floats);
std::unique_ptr<StepPolicy> make_elastic(const RunConfig& config, std::size_t floats);
std::unique_ptr<StepPolicy> make_asynchronous(const RunConfig& config, std::size_t floats);

// Returns the refusal of a push that is ahead of the parameters; nullopt if it is not, or if no
// step follows.
[[nodiscard]] std::optional<std::string> refusal_if_ahead(const PushId& push, const StepState& now);

}  // namespace disttf::roles
