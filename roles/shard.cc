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
      slots_(config_.slots()),
      trainers_(config_.trainers) {
  for (Slot& slot : slots_) {
    slot.gradient = math::AlignedVector(range.size());
  }
  for (Trainer& trainer : trainers_) {
    if (!strict_) {
      trainer.snapshot = math::AlignedVector(range.size());
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
  }
  for (Trainer& trainer : trainers_) {
    trainer.dropped = false;
    trainer.settled = step;  // what made these parameters is in them
    trainer.last_step = step;
    trainer.incarnation = 0;
    trainer.last_sequence = 0;
  }
}

std::size_t Shard::state_size() { return (1 + optimizer_.state().size()) * range_.size(); }

std::vector<std::string> Shard::state_names() {
  std::vector<std::string> names;
  for (const math::StateTensor& tensor : optimizer_.state()) {
    names.emplace_back(tensor.name);
  }
  return names;
}

Admission Shard::admit(const PushId& push) {
  assert(push.trainer < trainers_.size());
  Trainer& trainer = trainers_[push.trainer];
  if (push.step > step_ && !finished()) {
    return {.verdict = Admission::Verdict::kRefuse,
            .destination = {},
            .why = "a gradient for step " + std::to_string(push.step) +
                   " came while the parameters are at step " + std::to_string(step_)};
  }
  if (config_.elastic() && push.micro_batch >= slots_.size()) {
    return {.verdict = Admission::Verdict::kRefuse,
            .destination = {},
            .why = "a gradient of micro-batch " + std::to_string(push.micro_batch) +
                   " came, a step has " + std::to_string(slots_.size())};
  }
  // A late copy of an older one must not make the newest one look answered.
  trainer.last_step = std::max(trainer.last_step, push.step);
  const bool repeat = is_repeat(trainer, push);
  const bool late = !repeat && config_.sync_replicas && push.step < step_;
  if (repeat) {
    ++counters_.repeats;
  }
  if (late) {
    drop(trainer, push.step);
    if (push.wants_cut) {
      make_cut(push.sequence);
    }
  }
  if (repeat || late || finished()) {
    return {.verdict = Admission::Verdict::kDiscard, .destination = {}, .why = {}};
  }
  return {.verdict = Admission::Verdict::kReceive, .destination = inbox_of(push), .why = {}};
}

// Elastic: two trainers may be sending the same micro-batch, so neither writes into its slot.
std::span<float> Shard::inbox_of(const PushId& push) {
  if (!config_.elastic()) {
    return slots_[push.trainer].gradient.span();
  }
  math::AlignedVector& inbox = trainers_[push.trainer].inbox;
  if (inbox.size() != range_.size()) {
    inbox = math::AlignedVector(range_.size());
  }
  return inbox.span();
}

bool Shard::is_repeat(const Trainer& trainer, const PushId& push) const noexcept {
  if (config_.elastic()) {
    return push.step < step_ || slots_[push.micro_batch].filled;
  }
  if (config_.sync_replicas) {
    return push.step < trainer.settled;
  }
  return push.incarnation == trainer.incarnation && push.sequence <= trainer.last_sequence;
}

void Shard::drop(Trainer& trainer, std::uint64_t step) noexcept {
  trainer.dropped = true;
  trainer.settled = step + 1;
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
  Trainer& trainer = trainers_[push.trainer];
  if (config_.elastic() && is_repeat(trainer, push)) {
    ++counters_.repeats;  // another trainer's came whole while this one was on its way
    return;
  }
  if (push.step < step_) {
    drop(trainer, push.step);  // backup workers: overtaken while the body was on its way
    if (push.wants_cut) {
      make_cut(push.sequence);
    }
    return;
  }
  Slot& slot = slots_[config_.elastic() ? push.micro_batch : push.trainer];
  if (config_.elastic()) {
    std::swap(slot.gradient, trainer.inbox);
  }
  assert(!slot.filled);
  slot.filled = true;
  trainer.dropped = false;
  trainer.settled = push.step + 1;
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
  Trainer& trainer = trainers_[push.trainer];
  trainer.incarnation = push.incarnation;
  trainer.last_sequence = push.sequence;
  ++trainer.clock;
  const std::uint64_t staleness = step_ >= push.step ? step_ - push.step : 0;
  counters_.staleness_sum += staleness;
  counters_.staleness_max = std::max(counters_.staleness_max, staleness);
  apply(slots_[push.trainer].gradient.span(), 1);
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

void Shard::want_cut(std::uint64_t sequence, std::uint64_t step) {
  if (step <= step_) {
    make_cut(sequence);
  } else {
    cut_wanted_ = sequence;
  }
}

std::optional<Answer> Shard::previous() const {
  if (!has_previous_) {
    return std::nullopt;
  }
  return Answer{.parameters = buffers_[1 - newest_].span(), .step = step_ - 1};
}

bool Shard::answerable(std::size_t trainer) const {
  const Trainer& asking = trainers_[trainer];
  if (finished()) {
    return true;
  }
  if (config_.sync_replicas) {
    return asking.last_step < step_;
  }
  if (!config_.max_staleness) {
    return true;
  }
  std::uint64_t slowest = asking.clock;
  for (const Trainer& other : trainers_) {
    if (other.joined) {
      slowest = std::min(slowest, other.clock);
    }
  }
  return asking.clock <= slowest + *config_.max_staleness;
}

Answer Shard::answer(std::size_t trainer) {
  Trainer& asking = trainers_[trainer];
  Answer answer{.parameters = newest().span(),
                .step = step_,
                .finished = finished(),
                .dropped = asking.dropped};
  if (!strict_) {
    // Others may move the parameters on while this reply is still leaving: a torn read.
    std::copy(answer.parameters.begin(), answer.parameters.end(), asking.snapshot.data());
    answer.parameters = asking.snapshot.span();
  }
  return answer;
}

void Shard::join(std::size_t trainer) {
  Trainer& asking = trainers_[trainer];
  if (asking.joined) {
    return;
  }
  // A newcomer starts level with the slowest, else everybody would wait for it to catch up.
  std::uint64_t slowest = std::numeric_limits<std::uint64_t>::max();
  for (const Trainer& other : trainers_) {
    if (other.joined) {
      slowest = std::min(slowest, other.clock);
    }
  }
  if (slowest != std::numeric_limits<std::uint64_t>::max()) {
    asking.clock = std::max(asking.clock, slowest);
  }
  asking.joined = true;
}

void Shard::leave(std::size_t trainer) { trainers_[trainer].joined = false; }

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
