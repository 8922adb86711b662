// The run that a host of a range is in, and the state that it holds of it: the configuration, the
// shard, and of which state the shard's numbers are.
//
//   nothing -> a run: begin_run()           configuration and shard; its numbers are no state
//           -> a state: finish_restore()    the chief has set it, or
//                       serve_copy()        the primary's, whose place this host has taken
//   and back: invalidate(), drop_for(), forget()
//
// A state is named by its generation, and by the process in which it began (its lineage): a ps that
// has lost its state and been set to the same one anew holds another one.
//
// A value but for the shard, which whoever receives into it or sends from it shares. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/wire/cut_messages.h"
#include "net/wire/frame.h"
#include "net/wire/generation.h"
#include "roles/ps/core/micro_batch_dealer.h"
#include "roles/ps/core/shard.h"
#include "roles/run/early_end.h"
#include "roles/run/run_config.h"
#include "roles/run/task.h"

namespace disttf::roles {

class RangeState {
 public:
  // Memory for the shard of a run, as Arena says; may be empty.
  using MakeArena = std::function<Arena(const RunConfig& config, math::Range range)>;
  // Of each update of a run with replicas, before the parameters change.
  using OnUpdate = std::function<void(const ShardUpdate&)>;

  // `task` must outlive it. `index`: of the range. `threads`: that may compute an update.
  RangeState(const Task& task, std::size_t index, std::size_t threads, MakeArena make_arena,
             OnUpdate on_update);

  // --- a run

  // Throws std::invalid_argument when this ps cannot serve such a run. `is_replicated`: it is known
  // already that another host has a part in the range, or that none has; nullopt: it is not.
  [[nodiscard]] RunConfig checked_config(const std::string& json,
                                         std::optional<bool> is_replicated) const;
  // A new shard takes the place of what was here. `json`: the same configuration, as it came.
  // Throws std::bad_alloc, and what `make_arena` throws; then there is none.
  void begin_run(const RunConfig& config, std::string json);
  // The shard of such a run; callable from any thread. Throws std::bad_alloc.
  [[nodiscard]] std::shared_ptr<Shard> make_shard(const RunConfig& config, Arena arena) const;
  // The next begin_run() with that configuration takes this shard and makes none.
  void prepared(std::string json, std::shared_ptr<Shard> shard) {
    prepared_json_ = std::move(json);
    prepared_ = std::move(shard);
  }
  // This host's part of the parameters of such a run.
  [[nodiscard]] math::Range range_of(const RunConfig& config) const;

  // --- a state

  // The shard's numbers are none from now on. REQUIRES: there is a shard; also below.
  void invalidate() noexcept { is_restored_ = false; }
  // After that: where a state of the chief's goes; see Shard. And that it has come.
  [[nodiscard]] std::vector<std::span<float>> begin_restore(bool parameters_only);
  void finish_restore(std::uint64_t step, net::Generation generation);
  // What the primary has copied into the shard is of that state.
  void took_copy(net::Generation generation, std::uint64_t lineage) noexcept;
  // The copy is the state from now on.
  void serve_copy() {
    shard_->catch_up();
    is_restored_ = true;
  }
  // What is here is nobody's: the run is over, and its result of this generation. That is kept, for
  // a chief that comes late and tells the others.
  void drop_for(net::Generation result) noexcept;
  // Of the run, too, nothing is known: as if this process had just begun.
  void forget() noexcept;

  // --patience: what the chief, or the primary, knows of the evaluations on the way. It belongs to
  // the run: a state that the chief sets this host to comes from a run that has it as well.
  void learn(const BestEvaluation& best) noexcept { best_.learn(best); }
  [[nodiscard]] const BestEvaluation& best() const noexcept { return best_; }

  // --- queries

  [[nodiscard]] std::size_t index() const noexcept { return index_; }  // of the range, among all
  // As it came; empty before one has.
  [[nodiscard]] const std::string& config_json() const noexcept { return config_json_; }
  // configuration_id() of that; 0 before one has come.
  [[nodiscard]] std::uint64_t configuration() const noexcept { return configuration_; }
  // A trainer that computes with this configuration (0: it does not say) has no part in the run.
  [[nodiscard]] bool is_of_another(std::uint64_t configuration) const noexcept {
    return configuration != 0 && configuration_ != 0 && configuration != configuration_;
  }
  // nullptr before a configuration has come.
  [[nodiscard]] const std::shared_ptr<Shard>& shard() const noexcept { return shard_; }
  // nullptr where the run is not elastic.
  [[nodiscard]] MicroBatchDealer* dealer() noexcept { return dealer_ ? &*dealer_ : nullptr; }
  // The shard's numbers are a state that steps are made from. (Not a copy of one.)
  [[nodiscard]] bool is_restored() const noexcept { return is_restored_; }
  [[nodiscard]] net::Generation generation() const noexcept { return generation_; }
  [[nodiscard]] bool is_of(net::Generation generation) const noexcept {
    return is_restored_ && generation == generation_;
  }
  // Incarnation of the process in which the state began.
  [[nodiscard]] std::uint64_t lineage() const noexcept { return lineage_; }
  // How many restores have begun here.
  [[nodiscard]] std::uint64_t restores() const noexcept { return restores_; }

  // How many trainers a step cannot be made without: all, before there is a shard; in async, and
  // after the last step, none.
  [[nodiscard]] std::size_t trainers_needed() const;
  // In strict mode nothing but the last step's parameters may be the run's result, and they are the
  // same in every state.
  [[nodiscard]] bool may_be_result() const {
    return !shard_->config().every_gradient_counts() || shard_->finished();
  }

  // Why a frame with a tensor cannot be about this range, if it cannot. The second: one with a
  // gradient, which lies there as the run's configuration says, or, where it is read in place, as
  // floats.
  [[nodiscard]] std::optional<std::string> fault_in(const net::FrameHeader& header) const;
  [[nodiscard]] std::optional<std::string> gradient_fault(const net::FrameHeader& header,
                                                          bool is_in_place) const;

  // The cut that a request of the chief's is about, if there is one; begun first, where it asks for
  // the state as it is now. It need not have been copied yet: that is done whenever nobody waits.
  [[nodiscard]] std::optional<CutName> find_cut(const net::CutRequest& request);
  // Copies at most so many floats of it. False: there was nothing left to copy.
  bool copy_cut(std::size_t floats) { return shard_ && shard_->copy_cut(floats); }
  // The one of that name, whole.
  [[nodiscard]] std::shared_ptr<const Cut> kept_cut(std::uint64_t name,
                                                    net::Generation generation) const;

 private:
  [[nodiscard]] bool keeps_cut(std::uint64_t name, net::Generation generation) const;
  void drop_shard() noexcept;
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  [[nodiscard]] std::size_t trainers() const { return task_.cluster.trainer_count(); }

  const Task& task_;
  const std::size_t index_;
  const std::size_t threads_;
  const MakeArena make_arena_;
  const OnUpdate on_update_;
  std::string config_json_;
  std::uint64_t configuration_ = 0;  // of config_json_
  std::shared_ptr<Shard> shard_;
  std::string prepared_json_;  // of the next
  std::shared_ptr<Shard> prepared_;
  std::optional<MicroBatchDealer> dealer_;  // of the shard, in an elastic run
  bool is_restored_ = false;
  net::Generation generation_ = 0;
  std::uint64_t lineage_;
  std::uint64_t restores_ = 0;
  BestEvaluation best_;
};

}  // namespace disttf::roles
