// A shard: the range of the parameter vector that one ps owns, and the gradients that change it. It
// uses neither sockets nor clocks; the ps's connections call it, and so can a test. Its parts:
//   shard_storage.h    the parameters, the optimizer, and the answers
//   step_policy.h      which gradients count and when a step is made, in each mode
//   snapshot_keeper.h  snapshot shards, for checkpoints
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
// With --ps_replicas 2 another ps keeps a copy (shard_copy.cc). The copy is filled once. Then it
// receives each update through on_update and makes the same updates in the same order. So it is
// bit-identical, and recognizes the same repeats. The primary's memory may keep the updates,
// together with the state that the first one starts from. The copy then defers the updates until
// catch_up() is called.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "math/parameter_layout.h"
#include "math/tree_sum.h"
#include "roles/ps/core/deferred_updates.h"
#include "roles/ps/core/gradient_check.h"
#include "roles/ps/core/shard_storage.h"
#include "roles/ps/core/snapshot_keeper.h"
#include "roles/ps/core/step_policy.h"
#include "run/run_config.h"
#include "run/training_state.h"

namespace disttf::roles {

struct Admission {
  enum class Verdict : std::uint8_t {
    kReceive,  // receive the gradient into `destination` (unless in_place), then commit()
    kDiscard,  // a repeat, or too late: throw the body away, then answer when answerable()
    kRefuse,   // invalid; `why` is the sentence
  };
  Verdict verdict = Verdict::kRefuse;
  std::span<float> destination = {};
  std::string why = {};
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

  // Counts what a policy has decided about a push.
  void count(Fate fate) noexcept {
    repeats += fate == Fate::kRepeat ? 1U : 0U;
    dropped += fate == Fate::kLate || fate == Fate::kAfterEnd ? 1U : 0U;
  }
  void add_staleness(std::uint64_t staleness) noexcept {
    staleness_sum += staleness;
    staleness_max = std::max(staleness_max, staleness);
  }
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
  std::uint64_t step = 0;
  ShardCounters counters;
  std::vector<TrainerIdentity> trainers;  // by rank
};

class Shard {
 public:
  // `range`: this ps's part of the vector. `threads`: how many may compute an update. `arena`:
  // ShardStorage::arena_size() floats; without one the shard allocates its own. Throws
  // std::bad_alloc.
  Shard(RunConfig config, math::Range range, std::size_t threads = 1, Arena arena = {});

  // --- a training state

  // Returns where to receive a training state: the parameters, then each of the optimizer's
  // tensors. They are to be filled between the two calls of a restore; with `parameters_only` the
  // optimizer starts from zero.
  [[nodiscard]] std::vector<std::span<float>> begin_restore(bool parameters_only);
  // The state is complete and is that of `step`; earlier pushes no longer count as repeats.
  // `with_previous`: so are the parameters of the previous step.
  void finish_restore(std::uint64_t step, bool with_previous = false);
  // No push changes the parameters any more until the next restore: they are the run's result.
  // Fully synchronous: if the run ends early, the current step counts as the last one. Gradients
  // received so far belong to a step that is not made (StepPolicy::conclude()).
  void conclude();
  [[nodiscard]] bool is_concluded() const noexcept { return is_concluded_; }
  // Returns whether no step follows.
  [[nodiscard]] bool finished() const noexcept {
    return step_ >= config_.train_steps || (is_concluded_ && config_.every_gradient_counts());
  }
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }

  // --- pushes and answers

  [[nodiscard]] Admission admit(const PushId& push);
  // Returns what is wrong with the gradient of an admitted push, and counts it; nullopt if it is
  // valid, or if commit() will not use it because another one has overtaken it.
  [[nodiscard]] std::optional<std::string> fault_in(const PushId& push,
                                                    std::span<const float> gradient);
  // The gradient of the admitted push is complete in its destination; or (PushId::in_place) it is
  // lent, and held while it is needed.
  void commit(const PushId& push, LentGradient lent = {});
  // Returns whether the trainer's last push can be answered now.
  [[nodiscard]] bool answerable(std::size_t trainer) const {
    return finished() || policy_->is_answerable(trainer, state());
  }
  // Returns the answer to a trainer. `is_result`: no more steps are waited for, though some may be
  // missing here. With averages the answer carries the averages, as after the last step.
  [[nodiscard]] Answer answer(std::size_t trainer, bool is_result = false);
  // Fully synchronous: returns the parameters of the previous step; nullopt if no step has been
  // made since a restore.
  [[nodiscard]] std::optional<Answer> previous() const;
  // As StepPolicy's.
  [[nodiscard]] std::uint64_t releases() const noexcept { return policy_->releases(state()); }

  // --- copies

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
  [[nodiscard]] std::span<float> update_inbox() { return policy_->inbox_of({}); }
  void take_update(const ShardUpdate& update);
  // Applies the deferred updates. To be called before the copy is served: until then its parameters
  // are older than its step.
  void catch_up();
  [[nodiscard]] bool is_behind() const noexcept { return !deferred_.is_empty(); }

  // --- snapshots

  // Requests a snapshot shard of the state of `step`: the current one, if that is reached.
  void want_snapshot(std::uint64_t sequence, std::uint64_t step);
  // As SnapshotKeeper's.
  bool copy_snapshot(std::size_t floats) { return snapshots_.copy(floats, storage_); }
  [[nodiscard]] std::shared_ptr<const SnapshotShard> snapshot() {
    return snapshots_.whole(storage_);
  }
  [[nodiscard]] std::optional<SnapshotShardName> snapshot_name() const noexcept {
    return snapshots_.name();
  }

  // --- parts

  [[nodiscard]] const RunConfig& config() const noexcept { return config_; }
  [[nodiscard]] math::Range range() const noexcept { return range_; }
  [[nodiscard]] const ShardCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] StepPolicy& policy() noexcept { return *policy_; }
  [[nodiscard]] const StepPolicy& policy() const noexcept { return *policy_; }
  [[nodiscard]] ShardStorage& storage() noexcept { return storage_; }
  [[nodiscard]] std::span<float> parameters() noexcept { return storage_.newest(); }

 private:
  [[nodiscard]] StepState state() const noexcept {
    return {.step = step_, .is_finished = finished(), .is_concluded = is_concluded_};
  }
  // Makes the step that this push completes.
  void make_step(const PushId& push, StepGradients gradients);
  // Calls on_update_.
  void notify_copy(const PushId& push, StepGradients& gradients);
  // With averages, once no step follows: keeps them as the result.
  void keep_result();
  // The update has been computed, or deferred.
  void step_made(std::size_t count, std::span<const std::uint64_t> trainers);

  RunConfig config_;
  math::Range range_;
  GradientCheck check_;
  std::function<std::span<float>()> place_of_update_;  // Arena's
  ShardStorage storage_;
  std::unique_ptr<StepPolicy> policy_;
  SnapshotKeeper snapshots_;
  DeferredUpdates deferred_;  // of a copy
  std::uint64_t step_ = 0;
  bool is_concluded_ = false;
  ShardCounters counters_;
  std::function<void(const ShardUpdate&)> on_update_;  // empty: there is no copy
};

}  // namespace disttf::roles
