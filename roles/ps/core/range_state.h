// The run of a range's host, and the state that it holds: the configuration, the shard, and which
// state the shard's numbers belong to.
//
//   nothing -> a run: begin_run()           configuration and shard, but no state
//           -> a state: finish_restore()    the chief has set it, or
//                       serve_copy()        this host has taken the primary's place
//   and back: invalidate(), drop_for(), forget()
//
// A state is named by its generation and its lineage, which is the process in which it began: a ps
// that loses its state and is restored to the same one holds a different state.
//
// A value, except for the shard, which is shared with the code that receives into it or sends from
// it. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/snapshot_messages.h"
#include "roles/ps/core/micro_batch_scheduler.h"
#include "roles/ps/core/shard.h"
#include "run/run_config.h"
#include "run/task.h"
#include "run/training_state.h"

namespace disttf::roles {

class RangeState {
 public:
  // Allocates memory for the shard of a run, see Arena; may be empty.
  using MakeArena = std::function<Arena(const RunConfig& config, math::Range range)>;
  // Called for each update of a run with replicas, before the parameters change.
  using OnUpdate = std::function<void(const ShardUpdate&)>;

  // `task` must outlive it. `index`: of the range. `threads`: how many may compute an update.
  RangeState(const Task& task, std::size_t index, std::size_t threads, MakeArena make_arena,
             OnUpdate on_update);

  // --- a run

  // Parses and validates a configuration. Throws std::invalid_argument if this ps cannot serve such
  // a run. `is_replicated`: whether another host is known to have a part in the range, or known not
  // to; nullopt if neither is known.
  [[nodiscard]] RunConfig checked_config(const std::string& json,
                                         std::optional<bool> is_replicated) const;
  // Replaces the current shard, if any, by a new one. `json`: the configuration as received. Throws
  // std::bad_alloc, and what `make_arena` throws; there is no shard then.
  void begin_run(const RunConfig& config, std::string json);
  // Returns a shard for such a run. Callable from any thread. Throws std::bad_alloc.
  [[nodiscard]] std::shared_ptr<Shard> make_shard(const RunConfig& config, Arena arena) const;
  // The next begin_run() with this configuration uses this shard instead of making one.
  void prepared(std::string json, std::shared_ptr<Shard> shard) {
    prepared_json_ = std::move(json);
    prepared_ = std::move(shard);
  }
  // Returns this host's range of the parameters of such a run.
  [[nodiscard]] math::Range range_of(const RunConfig& config) const;

  // --- a state

  // The shard's numbers are no longer a state. REQUIRES, here and below: there is a shard.
  void invalidate() noexcept { is_restored_ = false; }
  // Where the chief's state is to be received, see Shard; and the end of that. To be called after
  // invalidate().
  [[nodiscard]] std::vector<std::span<float>> begin_restore(bool parameters_only);
  void finish_restore(std::uint64_t step, net::Generation generation);
  // The copy that the primary has sent into the shard is of that state.
  void took_copy(net::Generation generation, std::uint64_t lineage) noexcept;
  // The copy becomes the state.
  void serve_copy() {
    shard_->catch_up();
    is_restored_ = true;
  }
  // Drops the current state: the run is over, and its result is of generation `result`. That is
  // kept for a chief that comes late and tells the others.
  void drop_for(net::Generation result) noexcept;
  // Drops the run as well: as if this process had just begun.
  void forget() noexcept;

  // --patience: the best intermediate evaluation so far, as the chief or the primary has reported
  // it. It belongs to the run: a state that the chief restores comes from a run that has it as
  // well.
  void learn(const BestEvaluation& best) noexcept { best_.learn(best); }
  [[nodiscard]] const BestEvaluation& best() const noexcept { return best_; }

  // --- queries

  [[nodiscard]] std::size_t index() const noexcept { return index_; }  // of the range, among all
  // As received; empty before a configuration has arrived.
  [[nodiscard]] const std::string& config_json() const noexcept { return *config_json_; }
  // The same, for frames that hold it until they have left.
  [[nodiscard]] std::shared_ptr<const std::string> shared_config() const noexcept {
    return config_json_;
  }
  // configuration_id() of that; 0 before one has arrived.
  [[nodiscard]] std::uint64_t configuration() const noexcept { return configuration_; }
  // Returns whether a trainer that computes with this configuration (0: not reported) belongs to
  // another run.
  [[nodiscard]] bool is_of_another(std::uint64_t configuration) const noexcept {
    return configuration != 0 && configuration_ != 0 && configuration != configuration_;
  }
  // nullptr before a configuration has arrived.
  [[nodiscard]] const std::shared_ptr<Shard>& shard() const noexcept { return shard_; }
  // nullptr if the run is not elastic.
  [[nodiscard]] MicroBatchScheduler* scheduler() noexcept {
    return scheduler_ ? &*scheduler_ : nullptr;
  }
  // Returns whether the shard's numbers are a state that steps are made from. (False for a copy.)
  [[nodiscard]] bool is_restored() const noexcept { return is_restored_; }
  [[nodiscard]] net::Generation generation() const noexcept { return generation_; }
  [[nodiscard]] bool is_of(net::Generation generation) const noexcept {
    return is_restored_ && generation == generation_;
  }
  // The incarnation of the process in which the state began.
  [[nodiscard]] std::uint64_t lineage() const noexcept { return lineage_; }
  // The number of restores that have begun here.
  [[nodiscard]] std::uint64_t restores() const noexcept { return restores_; }

  // How many trainers a step cannot be made without: all, before there is a shard; none in async
  // mode and after the last step.
  [[nodiscard]] std::size_t trainers_needed() const;
  // Returns whether this state may be the run's result. In a fully synchronous run only the last
  // step's parameters may, and these are the same in every state.
  [[nodiscard]] bool may_be_result() const {
    return !shard_->config().every_gradient_counts() || shard_->finished();
  }

  // Returns why a frame with a tensor cannot be for this range, or nullopt. gradient_fault(): of a
  // frame with a gradient, whose form is that of the run's configuration, or floats if it is read
  // in place.
  [[nodiscard]] std::optional<std::string> fault_in(const net::FrameHeader& header) const;
  [[nodiscard]] std::optional<std::string> gradient_fault(const net::FrameHeader& header,
                                                          bool is_in_place) const;

  // Returns the snapshot shard that a chief's request names, if it exists. If the request asks for
  // the current state, begins a snapshot first. The shard need not be copied yet: copying continues
  // while no request waits.
  [[nodiscard]] std::optional<SnapshotShardName> find_snapshot(
      const net::SnapshotShardRequest& request);
  // Copies at most `floats` floats of it. Returns false if nothing was left to copy.
  bool copy_snapshot(std::size_t floats) { return shard_ && shard_->copy_snapshot(floats); }
  // Returns the complete snapshot shard of that name, or nullptr.
  [[nodiscard]] std::shared_ptr<const SnapshotShard> kept_snapshot(
      std::uint64_t name, net::Generation generation) const;

 private:
  [[nodiscard]] bool keeps_snapshot(std::uint64_t name, net::Generation generation) const;
  void drop_shard() noexcept;
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  [[nodiscard]] std::size_t trainers() const { return task_.cluster.trainer_count(); }

  const Task& task_;
  const std::size_t index_;
  const std::size_t threads_;
  const MakeArena make_arena_;
  const OnUpdate on_update_;
  std::shared_ptr<const std::string> config_json_ = std::make_shared<const std::string>();
  std::uint64_t configuration_ = 0;  // of config_json_
  std::shared_ptr<Shard> shard_;
  std::string prepared_json_;  // of prepared_
  std::shared_ptr<Shard> prepared_;
  std::optional<MicroBatchScheduler> scheduler_;  // in an elastic run
  bool is_restored_ = false;
  net::Generation generation_ = 0;
  std::uint64_t lineage_;
  std::uint64_t restores_ = 0;
  BestEvaluation best_;
};

}  // namespace disttf::roles
