#include "roles/ps/core/shard_storage.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "math/non_temporal_stores.h"

namespace disttf::roles {

namespace {

// Returns the floats of one part of the arena: whole pages.
std::size_t part_size(math::Range range) {
  constexpr std::size_t kStep = ShardStorage::kArenaAlignment;
  return (range.size() + kStep - 1) / kStep * kStep;
}

// Fully synchronous: two buffers, and with averages two for the result. Otherwise one buffer, and a
// copy of each trainer's answer.
std::size_t part_count(const RunConfig& config) {
  if (!config.every_gradient_counts()) {
    return 1 + config.trainers;
  }
  return config.optimizer.average_decay != 0 ? 4 : 2;
}

}  // namespace

std::size_t ShardStorage::arena_size(const RunConfig& config, math::Range range) {
  return part_count(config) * part_size(range);
}

std::uint64_t ShardStorage::bytes_taken(const RunConfig& config, math::Range range) {
  const std::size_t states = math::state_tensors(config.optimizer);
  return (std::uint64_t{arena_size(config, range)} + states * range.size()) * sizeof(float);
}

ShardStorage::ShardStorage(const RunConfig& config, math::Range range, std::size_t threads,
                           Arena arena)
    : floats_(range.size()),
      is_double_buffered_(config.every_gradient_counts()),
      schedule_(config.rate_schedule()),
      isa_(config.isa),
      wire_(wire_format_of(config)),
      streams_(arena.streams),
      arena_owner_(std::move(arena.owner)),
      optimizer_(config.optimizer, range.size(), config.isa, threads,
                 math::layout_of(config.model).decaying(range),
                 math::layout_of(config.model).running(range),
                 math::layout_of(config.model).rate_factors(range)),
      trainers_(config.trainers) {
  if (arena.floats.empty()) {
    own_arena_ = math::AlignedVector(arena_size(config, range));
    arena.floats = own_arena_.span();
  }
  assert(arena.floats.size() >= arena_size(config, range));
  // Trainers on other processors read the parameters next.
  optimizer_.stream_updates(streams_);
  lay_out(arena.floats);
}

void ShardStorage::lay_out(std::span<float> arena) {
  const std::size_t step = part_size({.begin = 0, .end = floats_});
  const auto part = [&](std::size_t number) { return arena.subspan(number * step, floats_); };
  buffers_[0] = part(0);
  if (is_double_buffered_) {
    buffers_[1] = part(1);
    if (optimizer_.averages()) {
      results_ = {part(2), part(3)};
    }
    return;
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    trainers_[rank].answer = part(1 + rank);
  }
}

// ------------------------------------------------------------------------------ a training state

std::size_t ShardStorage::state_size() { return (1 + optimizer_.state().size()) * floats_; }

std::vector<std::string> ShardStorage::state_names() {
  std::vector<std::string> names;
  for (const math::StateTensor& tensor : optimizer_.state()) {
    names.emplace_back(tensor.name);
  }
  return names;
}

std::vector<std::span<const float>> ShardStorage::tensors() {
  std::vector<std::span<const float>> tensors;
  for_each_tensor([&](std::span<const float> tensor) { tensors.push_back(tensor); });
  // The previous step's parameters come last, where begin_fill() expects them.
  if (has_previous_) {
    tensors.emplace_back(buffers_[1 - newest_]);
  }
  return tensors;
}

std::vector<std::span<float>> ShardStorage::begin_restore(bool parameters_only) {
  optimizer_.reset();
  if (is_double_buffered_) {
    newest_ = 1 - newest_;  // replies with the newest parameters may not have been sent yet
    result_ = 1 - result_;
  }
  // A state of parameters only has no average: the average begins with these parameters.
  begins_average_ = optimizer_.averages() && parameters_only;
  std::vector<std::span<float>> places;
  if (parameters_only) {
    places.push_back(newest());
  } else {
    for_each_tensor([&](std::span<float> tensor) { places.push_back(tensor); });
  }
  return places;
}

std::vector<std::span<float>> ShardStorage::begin_fill(bool with_previous) {
  assert(!with_previous || is_double_buffered_);
  std::vector<std::span<float>> places = begin_restore(/*parameters_only=*/false);
  if (with_previous) {
    places.push_back(buffers_[1 - newest_]);
  }
  return places;
}

void ShardStorage::finish_restore(bool with_previous) {
  if (std::exchange(begins_average_, false)) {
    optimizer_.begin_average(newest());
  }
  has_previous_ = with_previous;
  // The kept rounded replies are of the old parameters.
  rounded_[0].is_current = false;
  rounded_[1].is_current = false;
}

// ------------------------------------------------------------------------------------- an update

void ShardStorage::update(const math::TreeSum::Halves& gradient, std::size_t count,
                          std::uint64_t step, bool as_copy) {
  const std::size_t next = is_double_buffered_ ? 1 - newest_ : newest_;
  optimizer_.stream_updates(streams_ && !as_copy);
  // The optimizer counts updates from 1, the schedule counts steps from 0.
  optimizer_.apply(newest(), buffers_[next], gradient.sum, 1.0F / static_cast<float>(count),
                   step + 1, math::rate_factor(schedule_, step), gradient.last);
  newest_ = next;
  rounded_[next].is_current = false;
  // Updates in place leave no previous step.
  has_previous_ = is_double_buffered_;
}

void ShardStorage::keep_result() {
  const std::span<const float> average = optimizer_.average();
  std::copy(average.begin(), average.end(), results_[result_].begin());
}

std::size_t ShardStorage::padded_size() const noexcept {
  return (floats_ + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

std::size_t ShardStorage::update_size_with_state() {
  return (2 + optimizer_.state().size()) * padded_size();
}

// Only a failover reads the state there, so it is written with non-temporal stores and displaces
// nothing in the caches. The update that follows finds the tensors read here in the cache.
void ShardStorage::copy_state(std::span<float> to) {
  for_each_tensor([&](std::span<const float> tensor) {
    math::store_non_temporal(tensor.data(), to.data(), tensor.size());
    to = to.subspan(padded_size());
  });
  math::fence_non_temporal_stores();
}

void ShardStorage::take_state(std::span<const float> from) {
  for_each_tensor([&](std::span<float> tensor) {
    std::copy_n(from.begin(), tensor.size(), tensor.begin());
    from = from.subspan(padded_size());
  });
}

// The sum is written to where it is read later. The update itself goes on with the halves, which
// are in the cache.
std::span<const float> ShardStorage::whole(math::TreeSum::Halves& gradient, math::TreeSum* tree,
                                           std::span<float> place) const {
  if (place.empty()) {
    if (!gradient.last.empty()) {
      gradient = {.sum = tree->whole(), .last = {}};
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
    math::add(place, gradient.sum, gradient.last, isa_);
  }
  return place;
}

// --------------------------------------------------------------------------------------- answers

std::span<const float> ShardStorage::answer(std::size_t trainer, bool is_last, bool is_result) {
  const bool carries_average =
      optimizer_.averages() && (is_last || (is_result && !is_double_buffered_));
  if (is_double_buffered_) {
    return carries_average ? results_[result_] : newest();
  }
  // Other trainers' updates may change the parameters while this reply is being sent, so it is a
  // copy.
  const std::span<float> copy = trainers_[trainer].answer;
  copy_out(carries_average ? optimizer_.average() : newest(), copy);
  return copy;
}

void ShardStorage::copy_out(std::span<const float> from, std::span<float> to) const noexcept {
  if (streams_) {
    math::store_non_temporal(from.data(), to.data(), from.size());
    math::fence_non_temporal_stores();
  } else {
    std::copy(from.begin(), from.end(), to.begin());
  }
}

// Double-buffered: all trainers get the same answer, so it is rounded once.
std::span<const std::byte> ShardStorage::as_sent(std::size_t trainer,
                                                 std::span<const float> parameters) {
  // The buffer in which the answer lies: each has rounded bytes of its own.
  const std::size_t buffer = parameters.data() == buffers_[0].data() ? 0 : 1;
  Rounded& rounded = is_double_buffered_ ? rounded_[buffer] : trainers_[trainer].rounded;
  if (!is_double_buffered_ || !rounded.is_current) {
    rounded.bytes.resize(tensor_bytes(wire_, parameters.size()));
    pack_tensor(wire_, parameters, rounded.bytes);
    rounded.is_current = true;
  }
  return rounded.bytes;
}

std::span<std::byte> ShardStorage::packed_inbox(std::size_t trainer, std::size_t bytes) {
  std::vector<std::byte>& packed = trainers_[trainer].packed;
  if (packed.empty()) {
    // Sized once for the longest gradient, so that a step allocates nothing.
    packed.resize(longest_gradient(wire_, floats_));
  }
  return std::span(packed).first(bytes);
}

std::optional<std::span<const float>> ShardStorage::previous() const {
  return has_previous_ ? std::optional<std::span<const float>>(buffers_[1 - newest_])
                       : std::nullopt;
}

}  // namespace disttf::roles
