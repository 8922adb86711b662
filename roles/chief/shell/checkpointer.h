// The chief's other thread: brings home the snapshots that the ps keep while training goes on,
// holds the newest in memory, for a ps that loses its own, and writes it to --train_dir. Or,
// sharded, has each ps write its range there, makes a checkpoint of the files, and holds nothing.
// The decisions are roles/chief/core/snapshot_coordinator.h.
//
// A snapshot is asked for with a push (PsClient::push_pull) and collected here, over channels of
// its own, so a step costs nothing but the copy that each ps makes of its range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "math/parameter_layout.h"
#include "net/transport/interrupt.h"
#include "net/wire/generation.h"
#include "roles/monitor/core/record.h"
#include "roles/run/checkpoint_options.h"
#include "roles/run/early_end.h"
#include "roles/run/run_config.h"
#include "roles/run/task.h"
#include "roles/run/training_state.h"

namespace disttf::roles {

// Called by the computing thread alone.
class Checkpointer {
 public:
  // `task`, `options` and `layout` must outlive it. Starts the thread. `on_saved` is called with
  // what has been written to --train_dir, on a thread of this.
  using OnSaved = std::function<void(const CheckpointRecord&)>;
  Checkpointer(const Task& task, const CheckpointOptions& options, const RunConfig& config,
               const math::ParameterLayout& layout, OnSaved on_saved);
  ~Checkpointer();  // what is under way is given up
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Whether the push that makes `step` is to ask for a snapshot: one is due, and no other under
  // way.
  [[nodiscard]] bool wants_snapshot(std::uint64_t step);
  // Somebody has asked for a snapshot: the next push is to ask for one.
  void ask();
  // That push, the process's `sequence`th, was answered: the ps keep the snapshot.
  void collect(std::uint64_t sequence, net::Generation generation);

  // What is written into each checkpoint from now on.
  void keep(const EarlyEnd& early_end);

  // What a run goes on from: the newest snapshot, else the newest whole checkpoint, else nothing.
  // Throws Failure when the checkpoints are of another model.
  [[nodiscard]] std::optional<TrainingState> newest();

  // Saves the state that the ps hold now, before this task leaves the run. Waits for what is under
  // way, and for the ps to be at one step, at most until `deadline`.
  void save_now(net::Generation generation, net::Deadline deadline);
  // The same at the end of a run, when the ps stand still: tried once. False: a ps was lost, or has
  // another state; a disk that refuses is only warned of.
  [[nodiscard]] bool save_final(net::Generation generation, net::Deadline deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
