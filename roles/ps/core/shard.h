// A shard: the range of the parameter vector that one ps owns, and the rules by which gradients
// change it. No socket and no clock here: the ps's connections call this, and so can a test.
//
// A push goes through these calls:
//   admit()     when its header has come: where its gradient belongs, or that it is not wanted. One
//               that lies in memory which the trainer shares is read there, and stays there
//               unchanged until the push is answered (elastic: the pull behind it)
//   fault_in()  when its gradient has come whole: whether that is a bad one. Whether a bad one is
//               used the caller decides
//   commit()    then; applies the step when it was the last one missing. A push whose connection
//               broke on the way is never committed; it may be admitted again
//   answer()    when answerable() says so: the parameters to reply with
//
// Sync: gradients are added as a tree over the ranks, whatever the order of arrival
// (math/tree_sum.h). Identity of a gradient is (step, trainer): a repeat is answered, never added
// twice.
// Elastic: the same with (step, micro-batch), whichever trainer sends it: a micro-batch's gradient
// is the same bits from all of them, and the first that comes counts.
// Where every gradient counts, a push may be the sum of a subtree (PushId::summed), the same bits
// as are added here. It counts for each of these trainers whose gradient is not here yet, and takes
// the place of those that are; a trainer whose gradient is in another one's sum waits for it.
// Backup workers: the first `replicas_to_aggregate` of a step count, later ones are dropped.
// Async: each push is applied at once; (incarnation, sequence) makes it exactly once across
// retries.
//
// With averages (OptimizerSpec::average_decay) the result of the run is these: whoever is answered
// after the last step gets them in the place of the parameters. All that goes on from a state
// (cuts, copies, previous()) has both.
//
// With `max_staleness` the answer of a trainer is held that is too far ahead of the slowest:
// staleness_clocks.h.
//
// In the strict mode (every gradient counts) the parameters from before the newest step are kept
// beside the newest: a trainer that was lost between its pushes to two ps finds them at different
// steps, one apart, and needs the older parameters everywhere to make its gradient again.
//
// With --ps_replicas 2 another ps keeps a copy (shard_copy.cc): it is filled once, then makes the
// same updates in the same order, from on_update's. So it has the same bits, and knows the same
// repeats. Where the primary's memory keeps updates, and a state that the first of them is made
// from, it makes none of them before it needs to: catch_up().
//
// Not thread-safe: the ps's one thread owns it.
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
#include "roles/run/cut.h"
#include "roles/run/run_config.h"
#include "roles/run/wire_format.h"

namespace disttf::roles {

// What identifies a push, from its frame's header and its connection.
struct PushId {
  std::size_t trainer = 0;        // rank
  std::uint64_t incarnation = 0;  // of the trainer's process
  std::uint64_t step = 0;         // the step its parameters were of
  std::uint64_t sequence = 0;     // the trainer's number of the push; see Shard::counts_from()
  bool wants_cut = false;         // keep a copy of the state that this push leads to
  std::size_t micro_batch = 0;    // elastic: which one of the step
  bool in_place = false;          // the gradient is to be read where it lies
  // Strict: the gradient is the sum of those of so many trainers from this one on, a subtree; or
  // there is none, as this trainer's is in such a sum of another one.
  std::size_t summed = 1;
  bool is_in_sum = false;
};

struct Admission {
  enum class Verdict : std::uint8_t {
    kReceive,  // receive the gradient into `destination` (unless in_place), then commit()
    kDiscard,  // a repeat, or too late: throw the body away, then answer when answerable()
    kRefuse,   // makes no sense: `why` is the sentence
  };
  Verdict verdict = Verdict::kRefuse;
  std::span<float> destination;
  std::string why;
};

// What the reply to a push or a pull carries. `parameters` stays unchanged until the same trainer
// pushes again (strict: until every trainer has pushed twice).
struct Answer {
  std::span<const float> parameters;
  std::uint64_t step = 0;  // the step these parameters are of: updates applied so far
  bool finished = false;   // the run has made all its steps
  bool dropped = false;    // this trainer's last gradient came late and was not used
};

// Counted since the shard was made; reported by status and at the end of a run.
struct ShardCounters {
  std::uint64_t pushes = 0;   // gradients received whole
  std::uint64_t applied = 0;  // gradients that changed parameters
  std::uint64_t repeats = 0;  // gradients seen before
  std::uint64_t dropped = 0;  // backup workers: late gradients
  std::uint64_t staleness_sum =
      0;  // async: updates by others between a trainer's read and its push
  std::uint64_t staleness_max = 0;
  std::uint64_t bad = 0;  // gradients with a fault; of this process alone: a copy begins at 0
};

// One update of the parameters, for whoever keeps a copy of the shard. `trainers` is valid during
// the call. So is `gradient`; and behind it until the shard is told of something else, where
// whoever has shared the memory that it may lie in keeps that: a connection does until its next
// header.
struct ShardUpdate {
  PushId push;                      // async: that it applies; sync: the one that completed the step
  std::span<const float> gradient;  // the sum of the gradients of these:
  std::span<const std::uint64_t> trainers;  // a net::RankSet
  // What the update is made from, where there was room for that: the tensors, as in a state, behind
  // `gradient`, each on a boundary of kTensorAlignment. Empty: whoever keeps a copy has it.
  std::span<const float> state = {};
  // Of an update that need not be made at once: keeps both, unchanged. See Shard::take_update().
  std::shared_ptr<const void> memory = {};
};

// What a copy of a shard needs besides the tensors.
struct ShardIdentity {
  // By which repeats are known.
  struct Trainer {
    std::uint64_t incarnation = 0;
    std::uint64_t last_sequence = 0;
    std::uint64_t clock = 0;  // also from before a restore, after which no repeat is known
    std::uint64_t used = 0;   // see net::FillTrainer
  };
  std::uint64_t step = 0;
  ShardCounters counters;
  std::vector<Trainer> trainers;  // by rank
};

// Memory that a shard answers from: the parameters, and where these may move on while an answer is
// still leaving, a copy for each trainer.
struct Arena {
  std::span<float> floats;            // zeroed
  std::shared_ptr<const void> owner;  // keeps them; the shard keeps it
  // What trainers are to read is streamed there (math/streaming.h): they read it on other
  // processors before this one does.
  bool streams = false;
  // Where whoever is told of updates (Shard::on_update) may read the next one's gradient; asked for
  // each. Empty, or nothing: it reads it where it lies. Of Shard::update_size_with_state(): the
  // state that it is made from is copied there, too.
  std::function<std::span<float>()> place_of_update = {};
};

class Shard {
 public:
  // How large an arena is, in floats, and on what boundary of floats each part of it begins: that
  // of a page, so that a trainer may map it alone.
  [[nodiscard]] static std::size_t arena_size(const RunConfig& config, math::Range range);
  // How many bytes a new one takes: its arena, and the optimizer's state.
  [[nodiscard]] static std::uint64_t bytes_taken(const RunConfig& config, math::Range range);
  static constexpr std::size_t kArenaAlignment = 4096 / sizeof(float);
  // Of the tensors behind a gradient, in floats: 64 bytes.
  static constexpr std::size_t kTensorAlignment = 64 / sizeof(float);

  // `range`: this ps's part of the vector. `threads`: how many may compute an update. `arena`: of
  // arena_size(); without one the shard takes memory of its own. Throws std::bad_alloc.
  Shard(RunConfig config, math::Range range, std::size_t threads = 1, Arena arena = {});

  // Where a training state goes: the parameters, then each tensor of the optimizer's. To be filled
  // between the two calls of a restore; with `parameters_only` the optimizer begins anew.
  [[nodiscard]] std::vector<std::span<float>> begin_restore(bool parameters_only);
  // The state has come whole and is `step`'s: what was pushed before is forgotten.
  void finish_restore(std::uint64_t step);
  // Floats of a whole training state: (1 + optimizer tensors) * range.size().
  [[nodiscard]] std::size_t state_size();
  // Of the optimizer's tensors, in the order in which they lie in a state.
  [[nodiscard]] std::vector<std::string> state_names();

  // Called for each update, before the parameters change.
  void on_update(std::function<void(const ShardUpdate&)> hook) { on_update_ = std::move(hook); }
  // The whole of it, for a copy: what identity() says, and the tensors: the parameters, the
  // optimizer's, and strict, after a step, the parameters of the step before.
  [[nodiscard]] ShardIdentity identity() const;
  [[nodiscard]] std::vector<std::span<const float>> tensors();
  // The copy's side of it: where the tensors go, and that they have come. `with_previous`: there is
  // one more than in a state.
  [[nodiscard]] std::vector<std::span<float>> begin_fill(bool with_previous);
  void finish_fill(const ShardIdentity& identity, bool with_previous);
  // An update, as the other one's hook told it. Its gradient may be received into the inbox.
  // One with a state is put off, and so are those behind it that come with `memory`, until another
  // one comes with a state, which makes those before it needless; or one without memory, or
  // tensors() or catch_up() is called, or the run ends with averages.
  [[nodiscard]] std::span<float> update_inbox() { return own_memory(slots_.front()); }
  void take_update(const ShardUpdate& update);
  // Makes what was put off. Whoever serves the copy does so first: until then its parameters are
  // of an older step than it says.
  void catch_up();
  [[nodiscard]] bool is_behind() const noexcept { return !put_off_.empty(); }
  // In floats: a gradient up to the next boundary; and with the state behind it.
  [[nodiscard]] std::size_t padded_size() const noexcept;
  [[nodiscard]] std::size_t update_size_with_state();

  [[nodiscard]] Admission admit(const PushId& push);
  // What is bad about the gradient of the admitted push, if anything is; counted. nullopt, too, of
  // one that commit() will not use, since it has been overtaken on its way.
  [[nodiscard]] std::optional<std::string> fault_in(const PushId& push,
                                                    std::span<const float> gradient);
  // The gradient of the admitted push lies whole in its destination.
  void commit(const PushId& push);
  // The same, in_place: there it lies, in `memory`, which is kept for as long as it is needed.
  void commit(const PushId& push, std::span<const float> gradient,
              std::shared_ptr<const void> memory);

  // Whether the trainer's last push can be answered now.
  [[nodiscard]] bool answerable(std::size_t trainer) const;
  // `is_result`: no more steps are waited for, though some may be missing here. With averages the
  // result is these, as it is after the last step.
  [[nodiscard]] Answer answer(std::size_t trainer, bool is_result = false);

  // Another number whenever a trainer may have become answerable() by what another one has done.
  [[nodiscard]] std::uint64_t releases() const noexcept {
    return config_.sync_replicas ? step_ + (is_concluded_ ? 1 : 0)
                                 : clocks_.releases() + (finished() ? 1 : 0);
  }

  // A trainer that has not joined, or has left, holds back nobody in async.
  void join(std::size_t trainer) { clocks_.join(trainer); }
  void leave(std::size_t trainer) { clocks_.leave(trainer); }
  // Async: what the trainer's next push is to be numbered above.
  [[nodiscard]] std::uint64_t counts_from(std::size_t trainer) const {
    return clocks_.counts_from(trainer);
  }

  // Async: the push of that number, or a newer one of the same process.
  [[nodiscard]] bool has_applied(std::size_t trainer, std::uint64_t incarnation,
                                 std::uint64_t sequence) const noexcept {
    return trainers_[trainer].incarnation == incarnation &&
           trainers_[trainer].last_sequence >= sequence;
  }

  // Elastic: a cut of the state that `step` leads to, now if it has been made already.
  void want_cut(std::uint64_t sequence, std::uint64_t step);
  // Sync: the trainers (elastic: micro-batches) whose gradient of the current step is still
  // missing, in order.
  [[nodiscard]] std::vector<std::size_t> missing() const;

  [[nodiscard]] const RunConfig& config() const noexcept { return config_; }
  [[nodiscard]] math::Range range() const noexcept { return range_; }
  [[nodiscard]] std::span<float> parameters() noexcept { return newest(); }
  // What is evaluated of them: with averages these. They move on with the next update.
  [[nodiscard]] std::span<const float> evaluated() const noexcept {
    assert(!is_behind());
    return optimizer_.averages() ? optimizer_.average() : newest();
  }
  // Strict: the parameters of the step before; nullopt when no step has been made since a restore.
  [[nodiscard]] std::optional<Answer> previous() const;
  // No push changes the parameters any more, until the next restore: they are the run's result.
  // Strict: of a run that ends before its last step, which has been made for whoever asks.
  // Gradients that are here belong to a step that is not made: with backup workers they are
  // dropped, as their senders are answered now and then compute in the memory that these may lie
  // in.
  void conclude();
  [[nodiscard]] bool is_concluded() const noexcept { return is_concluded_; }
  // Strict: that was said, of parameters that are not those of the last step of all.
  [[nodiscard]] bool has_ended_early() const noexcept { return strict_ && is_concluded_; }
  // Begins a cut of the state as it is. Nobody waits while it is copied: copy_cut() does that bit
  // by bit, and what is left is copied before the state changes, or when the cut is asked for.
  void cut_now(std::uint64_t sequence) { begin_cut(sequence); }
  // Copies at most so many floats of a cut that is not whole yet. False: there is none.
  bool copy_cut(std::size_t floats);
  // The newest cut, if one was asked for since the last restore; and what may be known of it
  // without having it copied: its sequence and its step.
  [[nodiscard]] std::shared_ptr<const Cut> cut();
  [[nodiscard]] std::optional<CutName> cut_name() const noexcept;
  // How a gradient lies in a push's body. Where that is not as raw floats, its bytes are received
  // into packed_inbox() first and unpacked from there.
  [[nodiscard]] const WireFormat& wire() const noexcept { return wire_; }
  // REQUIRES: bytes <= longest_gradient(wire(), range().size()).
  [[nodiscard]] std::span<std::byte> packed_inbox(std::size_t trainer, std::size_t bytes);
  // The parameters of the answer to this trainer as they are sent where wire() rounds them;
  // unchanged for as long as they are.
  [[nodiscard]] std::span<const std::byte> as_sent(std::size_t trainer, const Answer& answer);
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  // Sync: gradients of the step that are not here yet; async: none is waited for.
  [[nodiscard]] std::size_t lacks() const noexcept {
    return config_.sync_replicas ? wanted() - arrived_ : 0;
  }
  [[nodiscard]] bool finished() const noexcept {
    return step_ >= config_.train_steps || has_ended_early();
  }
  [[nodiscard]] const ShardCounters& counters() const noexcept { return counters_; }

 private:
  // A gradient of the step that is being made: of one trainer, or of one micro-batch.
  struct Slot {
    // [range.size()]; empty until something is received. Once filled it is sum_'s, which may write
    // a part of the sum there: until the next step nothing is read or received there.
    math::AlignedVector own;
    std::span<const float> gradient;     // in `own`, or
    std::shared_ptr<const void> memory;  // in this
    bool filled = false;                 // sync: holds this step's gradient
  };
  // Parameters as they are sent.
  struct Rounded {
    std::vector<std::byte> bytes;
    bool is_current = false;
  };
  struct Trainer {
    // Elastic, and for sums: received into, then exchanged with the slot's.
    math::AlignedVector inbox;
    std::vector<std::byte> packed;  // a gradient's body, if it is not raw floats
    Rounded rounded;                // of `snapshot`
    std::span<float> snapshot;      // what the last answer carried, where parameters may move on
    bool dropped = false;           // backup workers: the newest gradient came too late
    std::uint64_t last_step = 0;    // of the last push: answered once that step has been made
    std::uint64_t settled = 0;      // sync: gradients of steps before this one are used or dropped
    // Sync: the step after the newest that a gradient was used for. Of its steps a trainer repeats
    // the last one alone, so no more is needed to tell whether a settled one was used.
    std::uint64_t used = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t last_sequence = 0;  // async: the newest push applied
  };

  [[nodiscard]] bool has_backup_workers() const noexcept {
    return config_.replicas_to_aggregate != 0;
  }
  [[nodiscard]] bool is_repeat(const PushId& push) const noexcept;
  // What is committed now is of no step: the run is over here.
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
  // This trainer's gradient of the step has come.
  void fill(std::size_t trainer) noexcept;
  // A gradient has been added: if it was the last that was missing, the step is made.
  void apply_if_whole(const PushId& push);
  void commit_async(const PushId& push);
  // The sum of `count` gradients, of the trainers in `used_`.
  void apply(const PushId& push, math::TreeSum::Halves gradient, std::size_t count);
  // Tells on_update_.
  void tell(const PushId& push, math::TreeSum::Halves& gradient);
  // The gradient that it is told, there if there is a place.
  [[nodiscard]] std::span<const float> whole(math::TreeSum::Halves& gradient,
                                             std::span<float> place);
  void copy_state(std::span<float> to);
  // The parameters that follow those of `step`; and that they have been made, or put off.
  void make(const math::TreeSum::Halves& gradient, std::size_t count, std::uint64_t step);
  void make_as_copy(std::span<const float> gradient, std::size_t count, std::uint64_t step);
  void drop_put_off() noexcept;
  void made(std::size_t count);
  void use(std::size_t rank) noexcept;
  [[nodiscard]] bool is_used(std::size_t rank) const noexcept;
  void count_async(const PushId& push);
  void lay_out(std::span<float> arena);
  void begin_cut(std::uint64_t sequence);
  void finish_cut() { copy_cut(SIZE_MAX); }
  void keep_result();
  void copy_out(std::span<const float> from, std::span<float> to) const noexcept;
  void begin_step() noexcept;
  [[nodiscard]] std::span<float> newest() const noexcept { return buffers_[newest_]; }
  [[nodiscard]] std::size_t wanted() const noexcept;  // sync: gradients that make a step

  // Constant after construction.
  RunConfig config_;
  math::Range range_;
  bool strict_;  // config_.every_gradient_counts: parameters stay put until all have been answered
  WireFormat wire_;
  GradientCheck check_;

  // Strict: a step is made from one buffer into the other, so that the older parameters stay and
  // a reply that is still leaving is not disturbed. Else only the first one is used.
  std::array<std::span<float>, 2> buffers_;
  std::array<Rounded, 2> rounded_;
  // Strict, with averages: these after the last step, in the one that is `result_`; the other may
  // still be leaving in replies from before a restore.
  std::array<std::span<float>, 2> results_;
  std::size_t result_ = 0;
  bool begins_average_ = false;  // the restore under way brings none
  std::size_t newest_ = 0;
  std::shared_ptr<const void> arena_owner_;  // holds buffers and snapshots, or
  math::AlignedVector own_arena_;            // this does
  bool streams_ = false;                     // Arena::streams
  bool has_previous_ = false;
  bool is_concluded_ = false;
  math::Optimizer optimizer_;
  std::optional<std::uint64_t> cut_wanted_;  // by the push with this sequence
  std::shared_ptr<Cut> cut_;                 // constant for whoever else has it
  std::size_t cut_copied_ = 0;               // floats of it
  std::vector<Slot> slots_;                  // by rank; elastic: by micro-batch
  std::vector<Trainer> trainers_;            // by rank
  StalenessClocks clocks_;
  std::uint64_t step_ = 0;
  std::size_t arrived_ = 0;  // sync: filled slots
  math::TreeSum sum_;        // sync: of the filled slots' gradients
  net::RankSet used_;        // whose gradients the update under way is made of; not elastic
  ShardCounters counters_;
  // Of a copy: what it has not made yet, and what the first of these is made from.
  struct PutOff {
    std::span<const float> gradient;
    std::size_t count = 0;   // of trainers
    std::uint64_t step = 0;  // of the parameters that it is made from
    std::shared_ptr<const void> memory;
  };
  std::vector<PutOff> put_off_;
  std::span<const float> put_off_from_;
  std::function<void(const ShardUpdate&)> on_update_;  // empty: nobody keeps a copy
  std::function<std::span<float>()> place_of_update_;  // Arena's
};

}  // namespace disttf::roles
