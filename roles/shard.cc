#include "roles/shard.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <new>
#include <utility>

namespace disttf::roles {

Shard::Shard(RunConfig config, math::Range range)
    : config_(std::move(config)),
      range_(range),
      strict_(config_.every_gradient_counts()),
      buffers_{math::AlignedVector(range.size()), math::AlignedVector(strict_ ? range.size() : 0)},
      optimizer_(config_.optimizer, range.size(), config_.isa),
      slots_(config_.trainers) {
  for (Slot& slot : slots_) {
    slot.gradient = math::AlignedVector(range.size());
    if (!strict_) {
      slot.snapshot = math::AlignedVector(range.size());
    }
  }
}

std::vector<std::span<float>> Shard::begin_restore(bool parameters_only) {
  optimizer_.reset();
  if (strict_) {
    newest_ = 1 - newest_;  // replies with the newest parameters may still be leaving
  }
  std::vector<std::span<float>> places{newest().span()};
  if (!parameters_only) {
    for (const math::StateTensor& tensor : optimizer_.state()) {
      places.push_back(tensor.values);
    }
  }
  return places;
}

void Shard::finish_restore(std::uint64_t step) {
  step_ = step;
  arrived_ = 0;
  folded_ = 0;
  has_previous_ = false;
  cut_wanted_.reset();
  cut_.reset();
  for (Slot& slot : slots_) {
    slot.filled = false;
    slot.dropped = false;
    slot.settled = step;  // what made these parameters is in them
    slot.last_step = step;
    slot.incarnation = 0;
    slot.last_sequence = 0;
  }
}

std::size_t Shard::state_size() { return (1 + optimizer_.state().size()) * range_.size(); }

Admission Shard::admit(const PushId& push) {
  assert(push.trainer < slots_.size());
  Slot& slot = slots_[push.trainer];
  if (push.step > step_ && !finished()) {
    return {.verdict = Admission::Verdict::kRefuse,
            .destination = {},
            .why = "a gradient for step " + std::to_string(push.step) +
                   " came while the parameters are at step " + std::to_string(step_)};
  }
  slot.last_step = push.step;
  const bool repeat = is_repeat(slot, push);
  const bool late = !repeat && config_.sync_replicas && push.step < step_;
  if (repeat) {
    ++counters_.repeats;
  }
  if (late) {
    drop(slot, push.step);
    if (push.wants_cut) {
      make_cut(push.sequence);
    }
  }
  if (repeat || late || finished()) {
    return {.verdict = Admission::Verdict::kDiscard, .destination = {}, .why = {}};
  }
  return {.verdict = Admission::Verdict::kReceive, .destination = slot.gradient.span(), .why = {}};
}

bool Shard::is_repeat(const Slot& slot, const PushId& push) const noexcept {
  if (config_.sync_replicas) {
    return push.step < slot.settled;
  }
  return push.incarnation == slot.incarnation && push.sequence <= slot.last_sequence;
}

void Shard::drop(Slot& slot, std::uint64_t step) noexcept {
  slot.dropped = true;
  slot.settled = step + 1;
  ++counters_.dropped;
}

void Shard::commit(const PushId& push) {
  ++counters_.pushes;
  if (push.wants_cut) {
    cut_wanted_ = push.sequence;
  }
  if (config_.sync_replicas) {
    commit_sync(push);
  } else if (!finished()) {  // else others made the last step while this body was on its way
    commit_async(push);
  }
}

void Shard::commit_sync(const PushId& push) {
  Slot& slot = slots_[push.trainer];
  if (push.step < step_) {
    drop(slot, push.step);  // backup workers: overtaken while the body was on its way
    if (push.wants_cut) {
      make_cut(push.sequence);
    }
    return;
  }
  assert(!slot.filled);
  slot.filled = true;
  slot.dropped = false;
  slot.settled = push.step + 1;
  ++arrived_;
  Slot& first = slots_.front();
  if (strict_) {
    for (; folded_ < slots_.size() && slots_[folded_].filled; ++folded_) {
      if (folded_ > 0) {
        math::accumulate(first.gradient.span(), slots_[folded_].gradient.span(), config_.isa);
      }
    }
  }
  if (arrived_ < wanted()) {
    return;
  }
  if (strict_) {
    apply(first.gradient.span(), arrived_);
    return;
  }
  auto sum = std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.filled; });
  for (auto other = std::next(sum); other != slots_.end(); ++other) {
    if (other->filled) {
      math::accumulate(sum->gradient.span(), other->gradient.span(), config_.isa);
    }
  }
  apply(sum->gradient.span(), arrived_);
}

void Shard::commit_async(const PushId& push) {
  Slot& slot = slots_[push.trainer];
  slot.incarnation = push.incarnation;
  slot.last_sequence = push.sequence;
  ++slot.clock;
  const std::uint64_t staleness = step_ >= push.step ? step_ - push.step : 0;
  counters_.staleness_sum += staleness;
  counters_.staleness_max = std::max(counters_.staleness_max, staleness);
  apply(slot.gradient.span(), 1);
}

void Shard::apply(std::span<const float> gradient_sum, std::size_t count) {
  const float rate_factor =
      config_.rate_decay == RateDecay::kLinear
          ? 1.0F - static_cast<float>(step_) / static_cast<float>(config_.train_steps)
          : 1.0F;
  const std::size_t next = strict_ ? 1 - newest_ : newest_;
  optimizer_.apply(newest().span(), buffers_[next].span(), gradient_sum,
                   1.0F / static_cast<float>(count), step_ + 1, rate_factor);
  newest_ = next;
  has_previous_ = strict_;
  counters_.applied += count;
  ++step_;
  arrived_ = 0;
  folded_ = 0;
  for (Slot& slot : slots_) {
    slot.filled = false;
  }
  if (cut_wanted_) {
    make_cut(*cut_wanted_);
  }
}

void Shard::make_cut(std::uint64_t sequence) {
  cut_wanted_.reset();
  auto cut = std::make_shared<Cut>();
  cut->sequence = sequence;
  cut->step = step_;
  try {
    cut->values = math::AlignedVector(state_size());
  } catch (const std::bad_alloc&) {
    return;  // training goes on; whoever asks for this cut is told that there is none
  }
  float* to = std::ranges::copy(newest().span(), cut->values.data()).out;
  for (const math::StateTensor& tensor : optimizer_.state()) {
    to = std::ranges::copy(tensor.values, to).out;
  }
  cut_ = std::move(cut);
}

std::optional<Answer> Shard::previous() const {
  if (!has_previous_) {
    return std::nullopt;
  }
  return Answer{.parameters = buffers_[1 - newest_].span(), .step = step_ - 1};
}

bool Shard::answerable(std::size_t trainer) const {
  const Slot& slot = slots_[trainer];
  if (finished()) {
    return true;
  }
  if (config_.sync_replicas) {
    return slot.last_step < step_;
  }
  if (!config_.max_staleness) {
    return true;
  }
  std::uint64_t slowest = slot.clock;
  for (const Slot& other : slots_) {
    if (other.joined) {
      slowest = std::min(slowest, other.clock);
    }
  }
  return slot.clock <= slowest + *config_.max_staleness;
}

Answer Shard::answer(std::size_t trainer) {
  Slot& slot = slots_[trainer];
  Answer answer{.parameters = newest().span(),
                .step = step_,
                .finished = finished(),
                .dropped = slot.dropped};
  if (!strict_) {
    // Others may move the parameters on while this reply is still leaving: a torn read.
    std::copy(answer.parameters.begin(), answer.parameters.end(), slot.snapshot.data());
    answer.parameters = slot.snapshot.span();
  }
  return answer;
}

void Shard::join(std::size_t trainer) {
  Slot& slot = slots_[trainer];
  if (slot.joined) {
    return;
  }
  // A newcomer starts level with the slowest, else everybody would wait for it to catch up.
  std::uint64_t slowest = std::numeric_limits<std::uint64_t>::max();
  for (const Slot& other : slots_) {
    if (other.joined) {
      slowest = std::min(slowest, other.clock);
    }
  }
  if (slowest != std::numeric_limits<std::uint64_t>::max()) {
    slot.clock = std::max(slot.clock, slowest);
  }
  slot.joined = true;
}

void Shard::leave(std::size_t trainer) { slots_[trainer].joined = false; }

std::vector<std::size_t> Shard::missing() const {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
    if (!slots_[rank].filled) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::size_t Shard::wanted() const noexcept {
  return strict_ ? slots_.size() : config_.replicas_to_aggregate;
}

}  // namespace disttf::roles
