// A shard: the range of the parameter vector that one ps owns, and the rules by which gradients
// change it. It uses neither sockets nor clocks; the ps's connections call it, and so can a test.
//
// A push goes through these calls:
//   admit()     when its header has arrived: returns where its gradient is to be received, or that
//               it is not wanted. A gradient in memory shared with the trainer is read there, and
//               must not change until the push is answered (elastic: the pull after it)
//   fault_in()  when its gradient is complete: returns whether it is non-finite or oversized. The
//               caller decides whether such a gradient is used
//   commit()    then: makes the step if this was the last missing gradient. A push whose
//               connection broke before is never committed; it may be admitted again
//   answer()    when answerable(): returns the parameters to reply with
//
// Sync: gradients are added as a tree over the ranks, whatever the order of arrival
// (math/tree_sum.h). A gradient is identified by (step, trainer): a repeat is answered, but never
// added twice.
// Elastic: a gradient is identified by (step, micro-batch). Any trainer may send it, as all compute
// bit-identical gradients of a micro-batch; the first to arrive counts.
// If every gradient counts (a fully synchronous run), a push may be the sum of a subtree
// (PushId::summed), bit-identical to what would be added here. The sum counts as the gradient of
// every trainer of the subtree, and replaces gradients of the subtree that have arrived before. A
// trainer whose gradient is in another trainer's sum waits for that sum.
// Backup workers: the first `replicas_to_aggregate` gradients of a step count, later ones are
// dropped.
// Async: each push is applied at once; (incarnation, sequence) makes it exactly once across
// retries.
//
// With averages (OptimizerSpec::average_decay) the averages are the result of the run: every answer
// after the last step carries them instead of the parameters. Snapshots and copies have both;
// previous() has the parameters.
//
// With `max_staleness` the answer to a trainer that is too far ahead of the slowest one is held
// back: staleness_clocks.h.
//
// In a fully synchronous run the parameters of the previous step are kept beside the newest. A
// trainer that was lost between its pushes to two ps finds these one step apart, and needs the
// older parameters from both to compute its gradient again.
//
// With --ps_replicas 2 another ps keeps a copy (shard_copy.cc). The copy is filled once. Then it
// receives each update through on_update and makes the same updates in the same order. So it is
// bit-identical, and recognizes the same repeats. The primary's memory may keep the updates,
// together with the state that the first one starts from. The copy then defers the updates until
// catch_up() is called.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "math/aligned.h"
#include "math/optimizer.h"
#include "math/parameter_layout.h"
#include "math/tree_sum.h"
#include "net/wire/replication.h"
#include "roles/ps/core/gradient_check.h"
#include "roles/ps/core/staleness_clocks.h"
#include "roles/run/run_config.h"
#include "roles/run/snapshot_shard.h"
#include "roles/run/wire_format.h"

namespace disttf::roles {

// Identifies a push, from its frame's header and its connection.
struct PushId {
  std::size_t trainer = 0;        // rank
  std::uint64_t incarnation = 0;  // of the trainer's process
  std::uint64_t step = 0;         // the step of the parameters that it was computed from
  std::uint64_t sequence = 0;     // the trainer's number of the push; see Shard::counts_from()
  bool wants_snapshot = false;    // take a snapshot of the state that this push leads to
  std::size_t micro_batch = 0;    // elastic: which one of the step
  bool in_place = false;          // the gradient is read where it lies
  // Fully synchronous: the gradient is the sum of the gradients of the `summed` trainers of a
  // subtree, of which `trainer` is the first.
  std::size_t summed = 1;
  bool is_in_sum = false;  // the push has no gradient, since another trainer's sum contains it
};

struct Admission {
  enum class Verdict : std::uint8_t {
    kReceive,  // receive the gradient into `destination` (unless in_place), then commit()
    kDiscard,  // a repeat, or too late: throw the body away, then answer when answerable()
    kRefuse,   // invalid; `why` is the sentence
  };
  Verdict verdict = Verdict::kRefuse;
  std::span<float> destination;
  std::string why;
};

// The content of the reply to a push or a pull. `parameters` does not change until the same trainer
// pushes again (fully synchronous: until every trainer has pushed twice).
struct Answer {
  std::span<const float> parameters;
  std::uint64_t step = 0;  // the step of these parameters: the number of updates applied
  bool finished = false;   // the run has made all its steps
  bool dropped = false;    // this trainer's last gradient came too late and was not used
};

// Counters since the shard was made; reported by status and at the end of a run.
struct ShardCounters {
  std::uint64_t pushes = 0;   // complete gradients received
  std::uint64_t applied = 0;  // gradients that changed parameters
  std::uint64_t repeats = 0;  // gradients received before
  std::uint64_t dropped = 0;  // backup workers: late gradients
  // async: updates by others between a trainer's read and its push
  std::uint64_t staleness_sum = 0;
  std::uint64_t staleness_max = 0;
  std::uint64_t bad = 0;  // rejected gradients, seen by this process alone: a copy begins at 0
};

// One update of the parameters, for a copy of the shard. `trainers` and `gradient` are valid during
// the call. If its memory is kept, `gradient` stays valid until the next call to the shard. (A
// connection keeps shared memory until it receives its next header.)
struct ShardUpdate {
  PushId push;  // async: the applied push; sync: the one that completed the step
  std::span<const float> gradient;          // the sum of the gradients of these:
  std::span<const std::uint64_t> trainers;  // a net::RankSet
  // The state that the update starts from, if there was room for it: the tensors, as in a state,
  // behind `gradient`, each aligned to kTensorAlignment. Empty: the copy has that state.
  std::span<const float> state = {};
  // Keeps `gradient` and `state` unchanged if the update may be deferred. See Shard::take_update().
  std::shared_ptr<const void> memory = {};
};

// What a copy of a shard needs besides the tensors.
struct ShardIdentity {
  // Identifies repeats.
  struct Trainer {
    std::uint64_t incarnation = 0;
    std::uint64_t last_sequence = 0;
    std::uint64_t clock = 0;  // kept across restores; after one no push counts as a repeat
    std::uint64_t used = 0;   // see net::FillTrainer
  };
  std::uint64_t step = 0;
  ShardCounters counters;
  std::vector<Trainer> trainers;  // by rank
};

// Memory that a shard answers from: the parameters and, if these may change while an answer is
// still being sent, a copy for each trainer.
struct Arena {
  std::span<float> floats;            // zeroed
  std::shared_ptr<const void> owner;  // keeps `floats` alive; the shard holds it
  // What trainers read is written there with non-temporal stores (math/non_temporal_stores.h): they
  // read it on other processors before this one does.
  bool streams = false;
  // Returns where the receiver of updates (Shard::on_update) is to read the next update's gradient;
  // called for each update. If it is unset or returns an empty span, the gradient is read where it
  // lies. If it returns Shard::update_size_with_state() floats, the state before the update is
  // copied there as well.
  std::function<std::span<float>()> place_of_update = {};
};

class Shard {
 public:
  // Returns the size of an arena in floats. Each part of it begins at a page boundary
  // (kArenaAlignment), so that a trainer can map one part alone.
  [[nodiscard]] static std::size_t arena_size(const RunConfig& config, math::Range range);
  // Returns how many bytes a new shard takes: its arena, and the optimizer's state.
  [[nodiscard]] static std::uint64_t bytes_taken(const RunConfig& config, math::Range range);
  static constexpr std::size_t kArenaAlignment = 4096 / sizeof(float);
  // Alignment of the tensors behind a gradient, in floats: 64 bytes.
  static constexpr std::size_t kTensorAlignment = 64 / sizeof(float);

  // `range`: this ps's part of the vector. `threads`: how many may compute an update. `arena`:
  // arena_size() floats; without one the shard allocates its own. Throws std::bad_alloc.
  Shard(RunConfig config, math::Range range, std::size_t threads = 1, Arena arena = {});

  // Returns where to receive a training state: the parameters, then each of the optimizer's
  // tensors. They are to be filled between the two calls of a restore; with `parameters_only` the
  // optimizer starts from zero.
  [[nodiscard]] std::vector<std::span<float>> begin_restore(bool parameters_only);
  // The state is complete and is that of `step`; earlier pushes no longer count as repeats.
  void finish_restore(std::uint64_t step);
  // Returns the floats of a whole training state: (1 + optimizer tensors) * range.size().
  [[nodiscard]] std::size_t state_size();
  // Returns the names of the optimizer's tensors, in the order in which they lie in a state.
  [[nodiscard]] std::vector<std::string> state_names();

  // Sets a function that is called for each update, before the parameters change.
  void on_update(std::function<void(const ShardUpdate&)> hook) { on_update_ = std::move(hook); }
  // The whole shard, for a copy: identity(), and the tensors: the parameters, the optimizer's, and,
  // in a fully synchronous run after a step, the parameters of the previous step.
  [[nodiscard]] ShardIdentity identity() const;
  [[nodiscard]] std::vector<std::span<const float>> tensors();
  // The copy's side. begin_fill() returns where to receive the tensors; finish_fill() is called
  // when they are complete. `with_previous`: there is one more tensor than in a state.
  [[nodiscard]] std::vector<std::span<float>> begin_fill(bool with_previous);
  void finish_fill(const ShardIdentity& identity, bool with_previous);
  // Takes an update, as the primary's hook received it. Its gradient may be received into the
  // inbox. An update with a state is deferred, and so are later ones that come with `memory`.
  // Deferred updates are dropped when another update with a state makes them needless. They are
  // applied when an update without memory arrives, when tensors() or catch_up() is called, and when
  // the run ends with averages.
  [[nodiscard]] std::span<float> update_inbox() { return own_memory(slots_.front()); }
  void take_update(const ShardUpdate& update);
  // Applies the deferred updates. To be called before the copy is served: until then its parameters
  // are older than its step.
  void catch_up();
  [[nodiscard]] bool is_behind() const noexcept { return !put_off_.empty(); }
  // In floats: the size of a gradient, padded to the next boundary; and with the state behind it.
  [[nodiscard]] std::size_t padded_size() const noexcept;
  [[nodiscard]] std::size_t update_size_with_state();

  [[nodiscard]] Admission admit(const PushId& push);
  // Returns what is wrong with the gradient of an admitted push, and counts it; nullopt if it is
  // valid, or if commit() will not use it because another one has overtaken it.
  [[nodiscard]] std::optional<std::string> fault_in(const PushId& push,
                                                    std::span<const float> gradient);
  // The gradient of the admitted push is complete in its destination.
  void commit(const PushId& push);
  // The same for a gradient that is read in place, in `memory`, which is held while it is needed.
  void commit(const PushId& push, std::span<const float> gradient,
              std::shared_ptr<const void> memory);

  // Returns whether the trainer's last push can be answered now.
  [[nodiscard]] bool answerable(std::size_t trainer) const;
  // Returns the answer to a trainer. `is_result`: no more steps are waited for, though some may be
  // missing here. With averages the answer carries the averages, as after the last step.
  [[nodiscard]] Answer answer(std::size_t trainer, bool is_result = false);

  // Returns a number that changes whenever a trainer may have become answerable() because of
  // another trainer's push.
  [[nodiscard]] std::uint64_t releases() const noexcept {
    return config_.sync_replicas ? step_ + (is_concluded_ ? 1 : 0)
                                 : clocks_.releases() + (finished() ? 1 : 0);
  }

  // Async: a trainer that has not joined, or has left, does not hold back others.
  void join(std::size_t trainer) { clocks_.join(trainer); }
  void leave(std::size_t trainer) { clocks_.leave(trainer); }
  // Async: returns the number above which the trainer's next push is to be numbered.
  [[nodiscard]] std::uint64_t counts_from(std::size_t trainer) const {
    return clocks_.counts_from(trainer);
  }

  // Async: returns whether the push of that number, or a newer one of the same process, was
  // applied.
  [[nodiscard]] bool has_applied(std::size_t trainer, std::uint64_t incarnation,
                                 std::uint64_t sequence) const noexcept {
    return trainers_[trainer].incarnation == incarnation &&
           trainers_[trainer].last_sequence >= sequence;
  }

  // Elastic: take a snapshot of the state that `step` leads to; at once if that is the current
  // state.
  void want_snapshot(std::uint64_t sequence, std::uint64_t step);
  // Sync: returns the trainers (elastic: micro-batches) whose gradient of the current step is still
  // missing, in order.
  [[nodiscard]] std::vector<std::size_t> missing() const;

  [[nodiscard]] const RunConfig& config() const noexcept { return config_; }
  [[nodiscard]] math::Range range() const noexcept { return range_; }
  [[nodiscard]] std::span<float> parameters() noexcept { return newest(); }
  // Returns what is evaluated: the parameters, or with averages these. They change with the next
  // update.
  [[nodiscard]] std::span<const float> evaluated() const noexcept {
    assert(!is_behind());
    return optimizer_.averages() ? optimizer_.average() : newest();
  }
  // Fully synchronous: returns the parameters of the previous step; nullopt if no step has been
  // made since a restore.
  [[nodiscard]] std::optional<Answer> previous() const;
  // No push changes the parameters any more until the next restore: they are the run's result.
  // Fully synchronous: if the run ends early, the current step counts as the last one. Gradients
  // received so far belong to a step that is not made: with backup workers they are dropped,
  // because their senders are answered at once and may then overwrite the memory in which they lie.
  void conclude();
  [[nodiscard]] bool is_concluded() const noexcept { return is_concluded_; }
  // Fully synchronous: returns whether conclude() was called before the last step.
  [[nodiscard]] bool has_ended_early() const noexcept {
    return fully_synchronous_ && is_concluded_;
  }
  // Begins a snapshot shard of the current state. It does not delay training: copy_snapshot()
  // copies it piece by piece. The rest is copied before the state changes, or when the shard is
  // fetched.
  void snapshot_now(std::uint64_t sequence) { begin_snapshot(sequence); }
  // Copies at most `floats` floats of an incomplete snapshot shard. Returns false if there is none.
  bool copy_snapshot(std::size_t floats);
  // Returns the newest snapshot shard, if one was requested since the last restore, and copies what
  // is left of it; snapshot_name() returns its sequence and step without copying.
  [[nodiscard]] std::shared_ptr<const SnapshotShard> snapshot();
  [[nodiscard]] std::optional<SnapshotShardName> snapshot_name() const noexcept;
  // The form of a gradient in a push's body. If it is not raw floats, its bytes are received into
  // packed_inbox() first, and unpacked from there.
  [[nodiscard]] const WireFormat& wire() const noexcept { return wire_; }
  // REQUIRES: bytes <= longest_gradient(wire(), range().size()).
  [[nodiscard]] std::span<std::byte> packed_inbox(std::size_t trainer, std::size_t bytes);
  // Returns the parameters of this trainer's answer in the form in which they are sent, if wire()
  // rounds them. They do not change for as long as the answer's parameters do not.
  [[nodiscard]] std::span<const std::byte> as_sent(std::size_t trainer, const Answer& answer);
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  // Sync: gradients of the step that are still missing; async: 0.
  [[nodiscard]] std::size_t lacks() const noexcept {
    return config_.sync_replicas ? wanted() - arrived_ : 0;
  }
  [[nodiscard]] bool finished() const noexcept {
    return step_ >= config_.train_steps || has_ended_early();
  }
  [[nodiscard]] const ShardCounters& counters() const noexcept { return counters_; }

 private:
  // A gradient of the current step: of one trainer, or of one micro-batch.
  struct Slot {
    // [range.size()]; empty until something is received. Once `filled`, sum_ owns it and may write
    // a partial sum there: until the next step nothing is read or received there.
    math::AlignedVector own;
    std::span<const float> gradient;     // in `own`, or
    std::shared_ptr<const void> memory;  // in this
    bool filled = false;                 // sync: holds this step's gradient
  };
  // Parameters in the form in which they are sent.
  struct Rounded {
    std::vector<std::byte> bytes;
    bool is_current = false;
  };
  struct Trainer {
    // Gradients of micro-batches and group sums are received here. The memory is then swapped with
    // the slot's.
    math::AlignedVector inbox;
    std::vector<std::byte> packed;  // a gradient's body that is not raw floats
    Rounded rounded;                // of `snapshot`
    std::span<float> snapshot;      // the content of the last answer, where parameters may change
    bool dropped = false;           // backup workers: the newest gradient came too late
    // The step of the trainer's last push, which is answered once that step has been made.
    std::uint64_t last_step = 0;
    std::uint64_t settled = 0;  // sync: gradients of steps before this one are used or dropped
    // Sync: one more than the newest step that used a gradient of this trainer. A trainer repeats
    // only its last step, so this suffices to tell whether a settled gradient was used.
    std::uint64_t used = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t last_sequence = 0;  // async: the newest push applied
  };

  [[nodiscard]] bool has_backup_workers() const noexcept {
    return config_.replicas_to_aggregate != 0;
  }
  [[nodiscard]] bool is_repeat(const PushId& push) const noexcept;
  // Returns whether a gradient committed now belongs to no step, because the run is over here.
  [[nodiscard]] bool is_too_late() const noexcept {
    return is_concluded_ || (!config_.sync_replicas && finished());
  }
  [[nodiscard]] std::span<float> inbox_of(const PushId& push);
  void drop(Trainer& trainer, std::uint64_t step) noexcept;
  [[nodiscard]] Slot& slot_of(const PushId& push) noexcept {
    return slots_[config_.elastic() ? push.micro_batch : push.trainer];
  }
  [[nodiscard]] std::span<float> own_memory(Slot& slot);
  void settle(const PushId& push);
  void commit_sync(const PushId& push);
  void commit_sum(const PushId& push);
  // Marks this trainer's gradient of the step as received.
  void fill(std::size_t trainer) noexcept;
  // Makes the step if the gradient just added was the last missing one.
  void apply_if_whole(const PushId& push);
  void commit_async(const PushId& push);
  // Applies the sum of `count` gradients, of the trainers in `used_`.
  void apply(const PushId& push, math::TreeSum::Halves gradient, std::size_t count);
  // Calls on_update_.
  void tell(const PushId& push, math::TreeSum::Halves& gradient);
  // Returns the whole gradient for on_update_, in `place` if that is not empty.
  [[nodiscard]] std::span<const float> whole(math::TreeSum::Halves& gradient,
                                             std::span<float> place);
  void copy_state(std::span<float> to);
  // make(): computes the parameters that follow those of `step`. made(): they have been computed,
  // or deferred.
  void make(const math::TreeSum::Halves& gradient, std::size_t count, std::uint64_t step);
  void make_as_copy(std::span<const float> gradient, std::size_t count, std::uint64_t step);
  void drop_put_off() noexcept;
  void made(std::size_t count);
  void use(std::size_t rank) noexcept;
  [[nodiscard]] bool is_used(std::size_t rank) const noexcept;
  void count_async(const PushId& push);
  void lay_out(std::span<float> arena);
  void begin_snapshot(std::uint64_t sequence);
  void finish_snapshot() { copy_snapshot(SIZE_MAX); }
  void keep_result();
  void copy_out(std::span<const float> from, std::span<float> to) const noexcept;
  void begin_step() noexcept;
  [[nodiscard]] std::span<float> newest() const noexcept { return buffers_[newest_]; }
  [[nodiscard]] std::size_t wanted() const noexcept;  // sync: gradients that make a step

  // Constant after construction.
  RunConfig config_;
  math::Range range_;
  // config_.every_gradient_counts(): the parameters before a step are kept, also for replies that
  // are still being sent.
  bool fully_synchronous_;
  WireFormat wire_;
  GradientCheck check_;

  // Fully synchronous: a step is made from one buffer into the other, so that the older parameters
  // are kept and a reply that is still being sent is not disturbed. Otherwise only the first buffer
  // is used.
  std::array<std::span<float>, 2> buffers_;
  std::array<Rounded, 2> rounded_;
  // Fully synchronous, with averages: `result_` is the buffer of the averages after the last step;
  // the other one may still be in replies from before a restore.
  std::array<std::span<float>, 2> results_;
  std::size_t result_ = 0;
  bool begins_average_ = false;  // the current restore brings no average
  std::size_t newest_ = 0;
  std::shared_ptr<const void> arena_owner_;  // holds buffers and snapshots, or
  math::AlignedVector own_arena_;            // this does
  bool streams_ = false;                     // Arena::streams
  bool has_previous_ = false;
  bool is_concluded_ = false;
  math::Optimizer optimizer_;
  std::optional<std::uint64_t> wanted_snapshot_;  // by the push with this sequence
  std::shared_ptr<SnapshotShard> snapshot_;       // constant while it is shared
  std::size_t snapshot_copied_ = 0;               // floats of it
  std::vector<Slot> slots_;                       // by rank; elastic: by micro-batch
  std::vector<Trainer> trainers_;                 // by rank
  StalenessClocks clocks_;
  std::uint64_t step_ = 0;
  std::size_t arrived_ = 0;  // sync: filled slots
  math::TreeSum sum_;        // sync: of the filled slots' gradients
  net::RankSet used_;        // the trainers whose gradients the current update uses; not elastic
  ShardCounters counters_;
  // Of a copy: the deferred updates, and the state that the first of them starts from.
  struct PutOff {
    std::span<const float> gradient;
    std::size_t count = 0;   // of trainers
    std::uint64_t step = 0;  // of the parameters that it starts from
    std::shared_ptr<const void> memory;
  };
  std::vector<PutOff> put_off_;
  std::span<const float> put_off_from_;
  std::function<void(const ShardUpdate&)> on_update_;  // empty: there is no copy
  std::function<std::span<float>()> place_of_update_;  // Arena's
};

}  // namespace disttf::roles
