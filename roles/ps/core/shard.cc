#include "roles/ps/core/shard.h"

#include <cassert>
#include <utility>

namespace disttf::roles {

Shard::Shard(RunConfig config, math::Range range, std::size_t threads, Arena arena)
    : config_(std::move(config)),
      range_(range),
      check_(config_, range_),
      place_of_update_(std::move(arena.place_of_update)),
      storage_(config_, range_, threads, std::move(arena)),
      policy_(make_step_policy(config_, range_.size())) {}

// ------------------------------------------------------------------------------ a training state

std::vector<std::span<float>> Shard::begin_restore(bool parameters_only) {
  // The restore replaces what deferred updates would start from.
  deferred_.clear();
  snapshots_.finish(storage_);
  return storage_.begin_restore(parameters_only);
}

void Shard::finish_restore(std::uint64_t step, bool with_previous) {
  storage_.finish_restore(with_previous);
  step_ = step;
  is_concluded_ = false;
  keep_result();
  policy_->restored(step);
  snapshots_.drop();
}

void Shard::conclude() {
  if (std::exchange(is_concluded_, true)) {
    return;
  }
  keep_result();
  counters_.dropped += policy_->conclude();
}

void Shard::keep_result() {
  if (finished() && storage_.has_results()) {
    catch_up();
    storage_.keep_result();
  }
}

// ---------------------------------------------------------------------------- pushes and answers

Admission Shard::admit(const PushId& push) {
  assert(push.trainer < config_.trainers);
  if (auto why = policy_->refusal(push, state())) {
    return {.verdict = Admission::Verdict::kRefuse, .why = *std::move(why)};
  }
  const Fate fate = policy_->arrive(push, state());
  if (fate != Fate::kRepeat || !push.is_in_sum) {
    counters_.count(fate);
  }
  // The chief still gets its snapshot, although its own gradient was dropped.
  if (fate == Fate::kLate && push.wants_snapshot) {
    want_snapshot(push.sequence, step_);
  }
  if (fate != Fate::kCounts || push.is_in_sum || finished()) {
    return {.verdict = Admission::Verdict::kDiscard};
  }
  return {.verdict = Admission::Verdict::kReceive,
          .destination = push.in_place ? std::span<float>() : policy_->inbox_of(push)};
}

std::optional<std::string> Shard::fault_in(const PushId& push, std::span<const float> gradient) {
  assert(gradient.size() == range_.size());
  // A gradient that is not used is not judged either: its fault must not stop the run.
  if (!policy_->uses(push, state())) {
    return std::nullopt;
  }
  std::optional<std::string> fault = check_.fault_in(gradient);
  if (fault) {
    ++counters_.bad;
  }
  return fault;
}

void Shard::commit(const PushId& push, LentGradient lent) {
  assert(!push.in_place || lent.gradient.size() == range_.size());
  // While the gradient was being received, others may have made its step, or the last one, or the
  // chief may have fetched the result.
  const Committed committed = policy_->commit(push, std::move(lent), state());
  counters_.pushes += committed.brought;
  counters_.count(committed.fate);
  if (push.wants_snapshot) {
    // Of the state that this push leads to; if it came too late, of the current one.
    want_snapshot(push.sequence, committed.fate == Fate::kLate ? step_ : step_ + 1);
  }
  if (committed.step) {
    counters_.add_staleness(committed.staleness);
    make_step(push, *committed.step);
  }
}

void Shard::make_step(const PushId& push, StepGradients gradients) {
  assert(!is_behind());
  // Called before the update: a copy may also need the state that the update starts from.
  if (on_update_) {
    notify_copy(push, gradients);
  }
  // The snapshot is of the state before the update, so it is completed before the parameters
  // change.
  snapshots_.finish(storage_);
  storage_.update(gradients.sum, gradients.count, step_);
  step_made(gradients.count, gradients.trainers);
}

void Shard::step_made(std::size_t count, std::span<const std::uint64_t> trainers) {
  counters_.applied += count;
  ++step_;
  keep_result();
  policy_->step_made(step_, trainers);
  // Last, so that the snapshot is of the state after the step.
  snapshots_.begin_wanted(step_, storage_);
}

Answer Shard::answer(std::size_t trainer, bool is_result) {
  assert(!is_behind());
  return {.parameters = storage_.answer(trainer, finished(), is_result),
          .step = step_,
          .finished = finished(),
          .dropped = policy_->is_dropped(trainer)};
}

std::optional<Answer> Shard::previous() const {
  assert(!is_behind());
  const auto parameters = storage_.previous();
  return parameters ? std::optional(Answer{.parameters = *parameters, .step = step_ - 1})
                    : std::nullopt;
}

// ------------------------------------------------------------------------------------- snapshots

void Shard::want_snapshot(std::uint64_t sequence, std::uint64_t step) {
  // The pull may arrive after the step was made, by other trainers' gradients.
  if (step <= step_) {
    assert(!is_behind());
    snapshots_.begin(sequence, step_, storage_);
  } else {
    snapshots_.want(sequence);
  }
}

}  // namespace disttf::roles
