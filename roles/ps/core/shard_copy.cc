// The part of a shard that concerns copies of it, for --ps_replicas 2: the state that fills a copy,
// the updates that the primary sends, and how the copy applies them.
#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "math/non_temporal_stores.h"
#include "roles/ps/core/shard.h"

namespace disttf::roles {

// ------------------------------------------------------------------------------- the whole state

ShardIdentity Shard::identity() const {
  ShardIdentity identity{.step = step_, .counters = counters_, .trainers = {}};
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    const Trainer& trainer = trainers_[rank];
    identity.trainers.push_back({.incarnation = trainer.incarnation,
                                 .last_sequence = trainer.last_sequence,
                                 .clock = clocks_.clock(rank),
                                 .used = trainer.used});
  }
  return identity;
}

std::vector<std::span<const float>> Shard::tensors() {
  // The state sent to a copy must be the newest one.
  catch_up();
  std::vector<std::span<const float>> tensors{newest()};
  for (const math::StateTensor& tensor : optimizer_.state()) {
    tensors.emplace_back(tensor.values);
  }
  // The previous step's parameters come last, where begin_fill() expects them.
  if (has_previous_) {
    tensors.emplace_back(buffers_[1 - newest_]);
  }
  return tensors;
}

std::vector<std::span<float>> Shard::begin_fill(bool with_previous) {
  assert(!with_previous || fully_synchronous_);
  std::vector<std::span<float>> places = begin_restore(/*parameters_only=*/false);
  if (with_previous) {
    places.push_back(buffers_[1 - newest_]);
  }
  return places;
}

void Shard::finish_fill(const ShardIdentity& identity, bool with_previous) {
  finish_restore(identity.step);
  has_previous_ = with_previous;
  counters_ = identity.counters;
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    Trainer& trainer = trainers_[rank];
    trainer.last_step = 0;  // a trainer that still waits repeats its request, which names the step
    trainer.incarnation = identity.trainers[rank].incarnation;
    trainer.last_sequence = identity.trainers[rank].last_sequence;
    clocks_.set(rank, identity.trainers[rank].clock);
    trainer.used = identity.trainers[rank].used;
  }
}

// ---------------------------------------------------------------------- the bytes of an update

std::size_t Shard::padded_size() const noexcept {
  return (range_.size() + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

std::size_t Shard::update_size_with_state() {
  return (2 + optimizer_.state().size()) * padded_size();
}

void Shard::tell(const PushId& push, math::TreeSum::Halves& gradient) {
  const std::span<float> place = place_of_update_ ? place_of_update_() : std::span<float>();
  std::span<float> state;
  // Room for more than a gradient means that the state before the update is wanted, too.
  if (place.size() > range_.size()) {
    assert(place.size() == update_size_with_state());
    state = place.subspan(padded_size());
    copy_state(state);
  }
  const std::span<const float> sum =
      whole(gradient, place.first(std::min(place.size(), range_.size())));
  on_update_({.push = push, .gradient = sum, .trainers = used_, .state = state});
}

// Only a failover reads the state there, so it is written with non-temporal stores and displaces
// nothing in the caches. The update that follows finds the tensors read here in the cache.
void Shard::copy_state(std::span<float> to) {
  const auto copy = [&](std::span<const float> tensor) {
    math::store_non_temporal(tensor.data(), to.data(), tensor.size());
    to = to.subspan(padded_size());
  };
  copy(newest());
  for (const math::StateTensor& tensor : optimizer_.state()) {
    copy(tensor.values);
  }
  math::fence_non_temporal_stores();
}

// If there is a place, the sum is written to where it is read later. The update itself goes on with
// the halves, which are in the cache.
std::span<const float> Shard::whole(math::TreeSum::Halves& gradient, std::span<float> place) {
  if (place.empty()) {
    if (!gradient.last.empty()) {
      gradient = {.sum = sum_.whole(), .last = {}};
    }
    return gradient.sum;
  }
  if (gradient.last.empty()) {
    copy_out(gradient.sum, place);
  } else if (streams_) {
    math::store_sum_non_temporal(gradient.sum.data(), gradient.last.data(), place.data(),
                                 place.size());
    math::fence_non_temporal_stores();
  } else {
    math::add(place, gradient.sum, gradient.last, config_.isa);
  }
  return place;
}

// --------------------------------------------------------------------- an update, in the copy

void Shard::take_update(const ShardUpdate& update) {
  assert(update.gradient.size() == range_.size() && update.trainers.size() == used_.size());
  assert(update.state.empty() ||
         (update.memory && update.state.size() == update_size_with_state() - padded_size()));
  std::size_t count = 0;
  for (const std::uint64_t ranks : update.trainers) {
    count += static_cast<std::size_t>(std::popcount(ranks));
  }
  std::copy(update.trainers.begin(), update.trainers.end(), used_.begin());
  // A copy counts as the primary does, so that a failover keeps the numbers.
  counters_.pushes += count;
  if (!config_.sync_replicas) {
    count_async(update.push);
  }
  if (!update.state.empty()) {
    drop_put_off();  // their result is part of this state
  }
  // Deferred only behind an update with a state, which says where to start, and only if the memory
  // stays valid until then.
  const bool is_put_off = update.memory && (!update.state.empty() || is_behind());
  if (is_put_off) {
    put_off_.push_back(
        {.gradient = update.gradient, .count = count, .step = step_, .memory = update.memory});
    if (!update.state.empty()) {
      put_off_from_ = update.state;
    }
  } else {
    // The update starts from the state that the deferred ones lead to.
    catch_up();
    make_as_copy(update.gradient, count, step_);
  }
  // A deferred update counts at once: the next one must follow this step.
  made(count);
  // A gradient in the update is never needed again, so every trainer is settled up to here.
  for (Trainer& trainer : trainers_) {
    trainer.settled = step_;
  }
}

void Shard::catch_up() {
  if (!is_behind()) {
    return;
  }
  std::span<const float> from = put_off_from_;
  const auto take = [&](std::span<float> tensor) {
    std::copy_n(from.begin(), tensor.size(), tensor.begin());
    from = from.subspan(padded_size());
  };
  take(newest());
  for (const math::StateTensor& tensor : optimizer_.state()) {
    take(tensor.values);
  }
  // In order, each with the step that it was made for: the learning rate depends on it.
  for (const PutOff& each : put_off_) {
    make_as_copy(each.gradient, each.count, each.step);
  }
  drop_put_off();
}

void Shard::drop_put_off() noexcept {
  put_off_.clear();
  put_off_from_ = {};
}

// No trainer reads a copy, but the next update does: no non-temporal stores.
void Shard::make_as_copy(std::span<const float> gradient, std::size_t count, std::uint64_t step) {
  optimizer_.stream_updates(false);
  make({.sum = gradient, .last = {}}, count, step);
  optimizer_.stream_updates(streams_);
}

}  // namespace disttf::roles
