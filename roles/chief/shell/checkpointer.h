// The chief's second thread. It fetches the snapshots that the ps keep while training goes on,
// holds the newest in memory for a ps that loses its state, and writes it to --train_dir. Or,
// sharded, it has each ps write its range there, makes a checkpoint of the files, and holds
// nothing. The decisions are in roles/chief/core/snapshot_coordinator.h.
//
// A snapshot is requested with a push (PsClient::push_pull) and collected here over separate
// channels, so a step costs only the copy that each ps makes of its range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "math/parameter_layout.h"
#include "net/waiting/interrupt.h"
#include "net/wire/frame.h"
#include "run/monitor/core/record.h"
#include "run/output_options.h"
#include "run/run_config.h"
#include "run/task.h"
#include "run/training_state.h"

namespace disttf::roles {

// Called by the computing thread only.
class Checkpointer {
 public:
  // `task`, `options` and `layout` must outlive it. Starts the thread. `on_saved` is called, on a
  // thread of this object, with what was written to --train_dir. `permit`, likewise, before a
  // checkpoint gets its name there: throws if this task may not write there any more.
  using OnSaved = std::function<void(const CheckpointRecord&)>;
  using Permit = std::function<void()>;
  Checkpointer(const Task& task, const CheckpointOptions& options, const RunConfig& config,
               const math::ParameterLayout& layout, OnSaved on_saved, Permit permit);
  ~Checkpointer();  // abandons what is in progress
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Returns whether the push that makes `step` is to request a snapshot: one is due, and none is in
  // progress.
  [[nodiscard]] bool wants_snapshot(std::uint64_t step);
  // A snapshot was requested from outside: the next push is to request one.
  void ask();
  // That push, the process's `sequence`th, was answered: the ps keep the snapshot.
  void collect(std::uint64_t sequence, net::Generation generation);

  // Sets what each checkpoint contains from now on.
  void keep(const EarlyStopState& early_stop_state);

  // Returns the state that a run goes on from: the newest snapshot, else the newest complete
  // checkpoint, else nothing. Throws Failure if the checkpoints are of another model.
  [[nodiscard]] std::optional<TrainingState> newest();

  // Saves the current state of the ps before this task leaves the run. Waits until `deadline` at
  // most for what is in progress, and for the ps to be at one step.
  void save_now(net::Generation generation, net::Deadline deadline);
  // The same at the end of a run, when the ps make no steps: one attempt. Returns false if a ps was
  // lost or has another state; a disk error is only logged.
  [[nodiscard]] bool save_final(net::Generation generation, net::Deadline deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
