#include "roles/ps/core/shard.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "math/non_temporal_stores.h"

namespace disttf::roles {

namespace {

// Returns the floats of one part of the arena.
// Whole pages, so that a trainer can map one part alone.
std::size_t part_size(math::Range range) {
  constexpr std::size_t kStep = Shard::kArenaAlignment;
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

std::size_t Shard::arena_size(const RunConfig& config, math::Range range) {
  return part_count(config) * part_size(range);
}

std::uint64_t Shard::bytes_taken(const RunConfig& config, math::Range range) {
  const std::size_t states = math::state_tensors(config.optimizer);
  return (std::uint64_t{arena_size(config, range)} + states * range.size()) * sizeof(float);
}

Shard::Shard(RunConfig config, math::Range range, std::size_t threads, Arena arena)
    : config_(std::move(config)),
      range_(range),
      fully_synchronous_(config_.every_gradient_counts()),
      wire_(wire_format_of(config_)),
      check_(config_, range_),
      arena_owner_(std::move(arena.owner)),
      streams_(arena.streams),
      optimizer_(config_.optimizer, range.size(), config_.isa, threads,
                 math::layout_of(config_.model).decaying(range),
                 math::layout_of(config_.model).running(range),
                 math::layout_of(config_.model).rate_factors(range)),
      slots_(config_.slots()),
      trainers_(config_.trainers),
      clocks_(config_.trainers, config_.max_staleness),
      sum_(config_.sync_replicas ? config_.slots() : 0, range.size(), config_.isa),
      used_(net::rank_set_size(config_.trainers)),
      place_of_update_(std::move(arena.place_of_update)) {
  if (arena.floats.empty()) {
    own_arena_ = math::AlignedVector(arena_size(config_, range_));
    arena.floats = own_arena_.span();
  }
  // Trainers on other processors read the parameters next.
  optimizer_.stream_updates(streams_);
  lay_out(arena.floats);
}

void Shard::lay_out(std::span<float> arena) {
  assert(arena.size() >= arena_size(config_, range_));
  const auto part = [&](std::size_t number) {
    return arena.subspan(number * part_size(range_), range_.size());
  };
  buffers_[0] = part(0);
  if (fully_synchronous_) {
    buffers_[1] = part(1);
    if (optimizer_.averages()) {
      results_ = {part(2), part(3)};
    }
    return;
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    trainers_[rank].snapshot = part(1 + rank);
  }
}

std::vector<std::span<float>> Shard::begin_restore(bool parameters_only) {
  // The restore replaces what deferred updates would start from.
  drop_put_off();
  finish_snapshot();
  optimizer_.reset();
  if (fully_synchronous_) {
    newest_ = 1 - newest_;  // replies with the newest parameters may not have been sent yet
    result_ = 1 - result_;
  }
  // A state of parameters only has no average: the average begins with these parameters.
  begins_average_ = optimizer_.averages() && parameters_only;
  std::vector<std::span<float>> places{newest()};
  if (!parameters_only) {
    for (const math::StateTensor& tensor : optimizer_.state()) {
      places.push_back(tensor.values);
    }
  }
  return places;
}

void Shard::finish_restore(std::uint64_t step) {
  if (std::exchange(begins_average_, false)) {
    optimizer_.begin_average(newest());
  }
  step_ = step;
  keep_result();
  is_concluded_ = false;
  begin_step();
  has_previous_ = false;
  // The kept rounded replies are of the old parameters.
  rounded_[0].is_current = false;
  rounded_[1].is_current = false;
  wanted_snapshot_.reset();
  snapshot_.reset();
  for (Trainer& trainer : trainers_) {
    trainer.dropped = false;
    trainer.settled = step;  // the restored parameters contain the gradients of earlier steps
    trainer.used = 0;
    trainer.last_step = step;
    // No process has the incarnation 0, so no push counts as a repeat after a restore.
    trainer.incarnation = 0;
    trainer.last_sequence = 0;
  }
}

void Shard::conclude() {
  if (std::exchange(is_concluded_, true)) {
    return;
  }
  if (fully_synchronous_) {
    keep_result();
  }
  // Backup workers: the incomplete step is never made. Trainers learn from the next answer that
  // their gradients for it were dropped.
  for (std::size_t rank = 0; rank < trainers_.size() && !fully_synchronous_ && has_backup_workers();
       ++rank) {
    if (slots_[rank].filled) {
      trainers_[rank].dropped = true;
      ++counters_.dropped;
    }
  }
  // Releases the gradients in shared memory; no step uses them.
  if (config_.sync_replicas) {
    begin_step();
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
  // A copy that has become the primary may lack updates that a trainer has seen but that were never
  // acknowledged.
  const bool may_be_ahead = config_.ps_replicas > 1 && !config_.sync_replicas;
  if (push.step > step_ && !finished() && !may_be_ahead) {
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
  // A late duplicate of an older push must not make the newest one look answered.
  trainer.last_step = std::max(trainer.last_step, push.step);
  const bool repeat = is_repeat(push);
  const bool late = !repeat && config_.sync_replicas && push.step < step_;
  if (repeat) {
    counters_.repeats += push.is_in_sum ? 0U : 1U;
    // (A copy learns here of a gradient that came too late at the primary.)
    trainer.dropped = has_backup_workers() && (push.step < step_ || is_concluded_) &&
                      trainer.used != push.step + 1;
  }
  if (late) {
    drop(trainer, push.step);
    // The chief still gets its snapshot, although its own gradient was dropped.
    if (push.wants_snapshot) {
      begin_snapshot(push.sequence);
    }
  } else if (!repeat && is_too_late()) {
    drop(trainer, step_);
  }
  if (repeat || late || push.is_in_sum || finished() || is_concluded_) {
    return {.verdict = Admission::Verdict::kDiscard, .destination = {}, .why = {}};
  }
  return {.verdict = Admission::Verdict::kReceive,
          .destination = push.in_place ? std::span<float>() : inbox_of(push),
          .why = {}};
}

// Elastic: two trainers may be sending the same micro-batch, so neither writes into its slot. A sum
// may arrive when its trainer's own gradient has been added already.
std::span<float> Shard::inbox_of(const PushId& push) {
  if (!config_.elastic() && push.summed == 1) {
    return own_memory(slots_[push.trainer]);
  }
  math::AlignedVector& inbox = trainers_[push.trainer].inbox;
  // Allocated on first use: most runs never need it.
  if (inbox.size() != range_.size()) {
    inbox = math::AlignedVector(range_.size());
  }
  return inbox.span();
}

std::span<float> Shard::own_memory(Slot& slot) {
  if (slot.own.size() != range_.size()) {
    slot.own = math::AlignedVector(range_.size());
  }
  return slot.own.span();
}

bool Shard::is_repeat(const PushId& push) const noexcept {
  const Trainer& trainer = trainers_[push.trainer];
  // Any trainer may send a micro-batch, so the slot decides, not the trainer.
  if (config_.elastic()) {
    return push.step < step_ || slots_[push.micro_batch].filled;
  }
  if (config_.sync_replicas) {
    const auto first = trainers_.begin() + static_cast<std::ptrdiff_t>(push.trainer);
    // A sum is a repeat only if it covers no trainer whose gradient is still missing.
    return std::all_of(first, first + static_cast<std::ptrdiff_t>(push.summed),
                       [&push](const Trainer& each) { return push.step < each.settled; });
  }
  // (Pushes of an older process do not arrive: its connections were closed.)
  return push.incarnation == trainer.incarnation && push.sequence <= trainer.last_sequence;
}

void Shard::drop(Trainer& trainer, std::uint64_t step) noexcept {
  trainer.dropped = true;
  trainer.settled = step + 1;
  ++counters_.dropped;
}

std::optional<std::string> Shard::fault_in(const PushId& push, std::span<const float> gradient) {
  assert(gradient.size() == range_.size());
  // A gradient that is not used is not judged either: its fault must not stop the run.
  const bool is_overtaken = config_.sync_replicas && (push.step < step_ || is_repeat(push));
  if (is_overtaken || is_too_late()) {
    return std::nullopt;
  }
  std::optional<std::string> fault = check_.fault_in(gradient);
  if (fault) {
    ++counters_.bad;
  }
  return fault;
}

void Shard::commit(const PushId& push) {
  // (The trainer's gradient may have arrived in a sum since it was admitted. Elastic: the slot is
  // that of a micro-batch, and there may be fewer of those than trainers.)
  if (!config_.elastic() && push.summed == 1 && !slots_[push.trainer].filled) {
    Slot& slot = slots_[push.trainer];
    slot.gradient = own_memory(slot);
    slot.memory.reset();
  }
  settle(push);
}

void Shard::commit(const PushId& push, std::span<const float> gradient,
                   std::shared_ptr<const void> memory) {
  assert(push.in_place && gradient.size() == range_.size());
  Slot& slot = slot_of(push);
  assert(!slot.filled || push.summed != 1);  // it was admitted in this call
  slot.gradient = gradient;
  slot.memory = std::move(memory);
  settle(push);
}

void Shard::settle(const PushId& push) {
  ++counters_.pushes;
  if (push.wants_snapshot) {
    // Kept until made(): the snapshot is of the state that this push leads to.
    wanted_snapshot_ = push.sequence;
  }
  // While it was being received, others have made the last step, or the chief has fetched the
  // result.
  if (is_too_late()) {
    drop(trainers_[push.trainer], step_);
  } else if (push.summed != 1) {
    commit_sum(push);
  } else if (config_.sync_replicas) {
    commit_sync(push);
  } else {
    commit_async(push);
  }
}

void Shard::commit_sync(const PushId& push) {
  Trainer& trainer = trainers_[push.trainer];
  if (is_repeat(push)) {
    ++counters_.repeats;  // another trainer's duplicate, or a sum, was complete first
    return;
  }
  if (push.step < step_) {
    drop(trainer, push.step);  // backup workers: overtaken while its body was being received
    if (push.wants_snapshot) {
      begin_snapshot(push.sequence);
    }
    return;
  }
  Slot& slot = slot_of(push);
  if (config_.elastic() && !push.in_place) {
    // Swapped, not copied: the slot's old memory becomes the inbox of the next push.
    std::swap(slot.own, trainer.inbox);
    slot.gradient = slot.own.span();
  }
  assert(!slot.filled);
  slot.filled = true;
  trainer.dropped = false;
  trainer.settled = push.step + 1;
  ++arrived_;
  // A gradient in the slot's own memory may be overwritten by a partial sum; one in shared memory
  // may not.
  sum_.add(static_cast<std::size_t>(&slot - slots_.data()), slot.gradient,
           slot.gradient.data() == slot.own.data() ? slot.own.span() : std::span<float>());
  apply_if_whole(push);
}

void Shard::apply_if_whole(const PushId& push) {
  if (arrived_ < wanted()) {
    return;
  }
  // A fixed order of ranks: the update does not depend on the order of arrival.
  std::ranges::fill(used_, 0);
  for (std::size_t each = 0; each < slots_.size() && !config_.elastic(); ++each) {
    if (slots_[each].filled) {
      use(each);
    }
  }
  apply(push, sum_.halves(), arrived_);
}

void Shard::use(std::size_t rank) noexcept { used_[rank / 64] |= net::in_set(rank); }

bool Shard::is_used(std::size_t rank) const noexcept {
  return (used_[rank / 64] & net::in_set(rank)) != 0;
}

void Shard::commit_async(const PushId& push) {
  count_async(push);
  std::ranges::fill(used_, 0);
  use(push.trainer);
  apply(push, {.sum = slots_[push.trainer].gradient, .last = {}}, 1);
}

void Shard::count_async(const PushId& push) {
  Trainer& trainer = trainers_[push.trainer];
  trainer.dropped = false;
  trainer.incarnation = push.incarnation;
  trainer.last_sequence = push.sequence;
  // Repeats have been excluded before this: a clock must count each push once.
  clocks_.set(push.trainer, push.sequence);
  // After a failover the trainer's step may be ahead of this copy.
  const std::uint64_t staleness = step_ >= push.step ? step_ - push.step : 0;
  counters_.staleness_sum += staleness;
  counters_.staleness_max = std::max(counters_.staleness_max, staleness);
}

// The update itself adds the two halves; on_update_ receives their sum.
void Shard::apply(const PushId& push, math::TreeSum::Halves gradient, std::size_t count) {
  assert(!is_behind());
  // on_update_ is called before the update: a copy may also need the state that the update starts
  // from.
  if (on_update_) {
    tell(push, gradient);
  }
  // The snapshot is of the state before the update, so it is completed before the parameters
  // change.
  finish_snapshot();
  make(gradient, count, step_);
  made(count);
}

void Shard::make(const math::TreeSum::Halves& gradient, std::size_t count, std::uint64_t step) {
  // Fully synchronous: the other buffer keeps the current parameters for replies and for
  // previous().
  const std::size_t next = fully_synchronous_ ? 1 - newest_ : newest_;
  // The optimizer counts updates from 1, the schedule counts steps from 0.
  optimizer_.apply(newest(), buffers_[next], gradient.sum, 1.0F / static_cast<float>(count),
                   step + 1, math::rate_factor(config_.rate_schedule(), step), gradient.last);
  newest_ = next;
  rounded_[next].is_current = false;
  // Other modes update in place, so there is no previous step.
  has_previous_ = fully_synchronous_;
}

void Shard::made(std::size_t count) {
  counters_.applied += count;
  ++step_;
  keep_result();
  begin_step();
  for (std::size_t rank = 0; rank < trainers_.size() && has_backup_workers(); ++rank) {
    if (is_used(rank)) {
      trainers_[rank].used = step_;
    }
  }
  // Last, so that the snapshot is of the state after the step.
  if (wanted_snapshot_) {
    begin_snapshot(*wanted_snapshot_);
  }
}

// Drops all gradients received for the step.
void Shard::begin_step() noexcept {
  arrived_ = 0;
  sum_.clear();
  for (Slot& slot : slots_) {
    slot.filled = false;
    slot.memory.reset();
  }
}

// Fully synchronous: the average may be replaced while replies with the result are still being
// sent.
void Shard::keep_result() {
  if (fully_synchronous_ && finished() && optimizer_.averages()) {
    catch_up();
    const std::span<const float> average = optimizer_.average();
    std::copy(average.begin(), average.end(), results_[result_].begin());
  }
}

std::optional<Answer> Shard::previous() const {
  assert(!is_behind());
  if (!has_previous_) {
    return std::nullopt;
  }
  return Answer{.parameters = buffers_[1 - newest_], .step = step_ - 1};
}

bool Shard::answerable(std::size_t trainer) const {
  const Trainer& asking = trainers_[trainer];
  // No step follows, so there is nothing to wait for.
  if (finished()) {
    return true;
  }
  if (config_.sync_replicas) {
    // Answerable once the step that the newest push was computed for has been made.
    return asking.last_step < step_;
  }
  return !clocks_.is_held(trainer);
}

Answer Shard::answer(std::size_t trainer, bool is_result) {
  assert(!is_behind());
  Trainer& asking = trainers_[trainer];
  Answer answer{
      .parameters = newest(), .step = step_, .finished = finished(), .dropped = asking.dropped};
  if (optimizer_.averages() && (finished() || (is_result && !fully_synchronous_))) {
    answer.parameters = fully_synchronous_ ? results_[result_] : optimizer_.average();
  }
  if (!fully_synchronous_) {
    // Other trainers' updates may change the parameters while this reply is being sent, so it is a
    // copy.
    copy_out(answer.parameters, asking.snapshot);
    answer.parameters = asking.snapshot;
  }
  return answer;
}

// Copies parameters to the memory from which a trainer reads them.
void Shard::copy_out(std::span<const float> from, std::span<float> to) const noexcept {
  if (streams_) {
    math::store_non_temporal(from.data(), to.data(), from.size());
    math::fence_non_temporal_stores();
  } else {
    std::copy(from.begin(), from.end(), to.begin());
  }
}

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
  return fully_synchronous_ ? slots_.size() : config_.replicas_to_aggregate;
}

}  // namespace disttf::roles
