#include "roles/trainer/core/stepper.h"

#include <algorithm>

namespace disttf::roles {

void Stepper::replied(const StepResult& reply) {
  if (next_ == Action::kPull) {
    // The run was joined: local steps count from here on.
    made_ = 0;
  } else {
    ++made_;
    ++numbered_;
  }
  go_on(reply);
}

void Stepper::peeked(const StepResult& reply) { go_on(reply); }

void Stepper::go_on(const StepResult& reply) {
  // A ps that has recorded a newer push, of a replaced process, moves the count up.
  numbered_ = std::max(numbered_, reply.counts_from);
  reply_ = reply;
  if (reply.finished) {
    next_ = Action::kLeave;
  } else {
    begin_step();
  }
}

void Stepper::begin_step() {
  if (run_.micro_batches == 0) {
    // Async: each trainer goes through its own part of the epochs at its own pace.
    // Sync: the step is that of the run, so a repeated step draws the same rows.
    batch_ = {.step = run_.sync_replicas ? reply_.step : made_, .slot = run_.rank};
    next_ = Action::kCompute;
    return;
  }
  pushed_.assign(pushed_.size(), false);
  missing_.clear();
  // Without a share this trainer waits until micro-batches turn out to be missing.
  const std::uint64_t stride = reply_.share.stride;
  for (std::uint64_t slot = reply_.share.first; stride != 0 && slot < pushed_.size();
       slot += stride) {
    missing_.push_back(slot);
  }
  // Taken from the end, so reversed.
  std::ranges::reverse(missing_);
  next_micro_batch();
}

void Stepper::next_micro_batch() {
  next_ = Action::kAwaitStep;
  // Micro-batches that were pushed in this step already are skipped.
  while (!missing_.empty() && next_ == Action::kAwaitStep) {
    const std::uint64_t slot = missing_.back();
    missing_.pop_back();
    if (may_compute(slot)) {
      batch_ = {.step = reply_.step, .slot = static_cast<std::size_t>(slot)};
      next_ = Action::kCompute;
    }
  }
}

bool Stepper::may_compute(std::uint64_t micro_batch) const noexcept {
  return micro_batch < pushed_.size() && !pushed_[micro_batch];
}

Stepper::Batch Stepper::batch_after() const noexcept {
  if (run_.micro_batches == 0) {
    return {batch_.step + 1, batch_.slot};
  }
  const auto next = std::find_if(missing_.rbegin(), missing_.rend(),
                                 [this](std::uint64_t each) { return may_compute(each); });
  if (next != missing_.rend()) {
    return {batch_.step, static_cast<std::size_t>(*next)};
  }
  const net::StepShare& share = reply_.share;
  // A guess: a wrong one only costs the time of loading that batch.
  return share.stride == 0 || share.first >= pushed_.size() ? batch_
                                                            : Batch{reply_.step + 1, share.first};
}

void Stepper::computed() noexcept {
  next_ = run_.micro_batches == 0 ? Action::kPushPull : Action::kPush;
}

void Stepper::pushed() {
  pushed_[batch_.slot] = true;
  next_micro_batch();
}

void Stepper::needs(std::span<const std::uint64_t> micro_batches) {
  // Reversed, since they are taken from the end.
  missing_.assign(micro_batches.rbegin(), micro_batches.rend());
  next_micro_batch();
}

bool Stepper::left(bool released) {
  if (released) {
    run_over();
    return false;
  }
  // In a fully synchronous run the result is the same whenever the last steps are made.
  const bool is_new = run_.fully_synchronous && reply_.finished;
  if (is_new) {
    // The caller keeps the parameters themselves.
    kept_ = reply_.step;
  }
  roll_back();
  return is_new;
}

void Stepper::roll_back() noexcept {
  // Otherwise run_over() would take the current parameters for the result.
  reply_.finished = false;
  next_ = Action::kPull;
}

void Stepper::run_over() noexcept {
  // A repeat must not fetch a result again that has been fetched.
  if (next_ == Action::kFetchFinal || next_ == Action::kEnd) {
    return;
  }
  if (run_.fully_synchronous && reply_.finished) {
    end(Result::kInHand);
  } else if (kept_) {
    reply_ = {.step = *kept_, .finished = true};
    end(Result::kKept);
  } else {
    next_ = Action::kFetchFinal;  // the last pushes of other trainers count as well
  }
}

void Stepper::fetched(std::optional<std::uint64_t> step) noexcept {
  reply_ = {.step = step.value_or(0), .finished = true};
  end(step ? Result::kInHand : Result::kNone);
}

void Stepper::end(Result result) noexcept {
  result_ = result;
  next_ = Action::kEnd;
}

}  // namespace disttf::roles
