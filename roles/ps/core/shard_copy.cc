// The part of a shard that concerns copies of it, for --ps_replicas 2: the state that fills a copy,
// the updates that the primary sends, and how the copy applies them.
#include <algorithm>
#include <bit>
#include <cassert>

#include "roles/ps/core/shard.h"

namespace disttf::roles {

// ------------------------------------------------------------------------------- the whole state

ShardIdentity Shard::identity() const {
  return {.step = step_, .counters = counters_, .trainers = policy_->identity()};
}

std::vector<std::span<const float>> Shard::tensors() {
  // The state sent to a copy must be the newest one.
  catch_up();
  return storage_.tensors();
}

std::vector<std::span<float>> Shard::begin_fill(bool with_previous) {
  deferred_.clear();
  snapshots_.finish(storage_);
  return storage_.begin_fill(with_previous);
}

void Shard::finish_fill(const ShardIdentity& identity, bool with_previous) {
  finish_restore(identity.step, with_previous);
  counters_ = identity.counters;
  policy_->identify(identity.trainers);
}

// ------------------------------------------------------------------------ an update, in the
// primary

void Shard::notify_copy(const PushId& push, StepGradients& gradients) {
  const std::span<float> place = place_of_update_ ? place_of_update_() : std::span<float>();
  std::span<float> state;
  // Room for more than a gradient means that the state before the update is wanted, too.
  if (place.size() > range_.size()) {
    assert(place.size() == storage_.update_size_with_state());
    state = place.subspan(storage_.padded_size());
    storage_.copy_state(state);
  }
  const std::span<const float> sum = storage_.whole(
      gradients.sum, gradients.tree, place.first(std::min(place.size(), range_.size())));
  on_update_({.push = push, .gradient = sum, .trainers = gradients.trainers, .state = state});
}

// --------------------------------------------------------------------------- an update, in the
// copy

void Shard::take_update(const ShardUpdate& update) {
  assert(update.gradient.size() == range_.size());
  assert(update.state.empty() ||
         (update.memory &&
          update.state.size() == storage_.update_size_with_state() - storage_.padded_size()));
  std::size_t count = 0;
  for (const std::uint64_t ranks : update.trainers) {
    count += static_cast<std::size_t>(std::popcount(ranks));
  }
  // A copy counts as the primary does, so that a failover keeps the numbers.
  counters_.pushes += count;
  counters_.add_staleness(policy_->follow(update.push, state()));
  // Deferred only behind an update with a state, which says where to start, and only if the memory
  // stays valid until then.
  if (update.memory && (!update.state.empty() || is_behind())) {
    deferred_.add(
        {.gradient = update.gradient, .count = count, .step = step_, .memory = update.memory},
        update.state);
  } else {
    // The update starts from the state that the deferred ones lead to.
    catch_up();
    storage_.update({.sum = update.gradient, .last = {}}, count, step_, /*as_copy=*/true);
  }
  // A deferred update counts at once: the next one must follow this step.
  step_made(count, update.trainers);
}

void Shard::catch_up() {
  if (!is_behind()) {
    return;
  }
  storage_.take_state(deferred_.state());
  // In order, each with the step that it was made for: the learning rate depends on it.
  for (const DeferredUpdates::Update& each : deferred_.updates()) {
    storage_.update({.sum = each.gradient, .last = {}}, each.count, each.step, /*as_copy=*/true);
  }
  deferred_.clear();
}

}  // namespace disttf::roles
