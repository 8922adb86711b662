// A simulated evaluator of a --train_dir. It reads checkpoints while the run writes and removes
// them, as DirectoryEvaluator in roles/evaluator/evaluator.cc does, in virtual time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/run_config.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "tests/sim/checks.h"
#include "tests/sim/disk.h"
#include "tests/sim/evaluator.h"

namespace disttf::sim {

class DirectoryEvaluatorProcess final : public ScoringProcess {
 public:
  // `every`: the time between two checkpoints that it scores. `is_written`: whether the run still
  // writes records, if not checkpoints, into the directory.
  DirectoryEvaluatorProcess(World& world, Network& network, Checks& checks, SimulatedDisk& disk,
                            const roles::RunConfig& config, Duration every,
                            std::function<bool()> is_written, roles::Task task, std::size_t node,
                            OnEnd on_end);

  void start() override;
  void terminate() override;
  [[nodiscard]] bool listens() const noexcept override { return false; }

 private:
  Routine<void> live(Fiber& fiber);
  // Scores the newest checkpoint that it can read and has not yet tried.
  Routine<void> score_newest(Fiber& fiber, std::vector<roles::CheckpointName> names);
  // Returns nullopt if the checkpoint is damaged or was removed. Reading takes time, in which the
  // run continues.
  Routine<std::optional<roles::TrainingState>> read(Fiber& fiber, roles::CheckpointName name);
  // Returns the checkpoints in the directory; none while the store is unavailable.
  [[nodiscard]] std::vector<roles::CheckpointName> look();
  [[nodiscard]] Duration disk_time();

  Checks& checks_;
  SimulatedDisk& disk_;
  const roles::RunConfig config_;
  const Duration every_;
  const std::function<bool()> is_written_;
  std::optional<roles::CheckpointName> seen_;  // the newest that it has tried
  Time next_{};
  Time last_change_{};
  std::uint64_t disk_uses_ = 0;
};

}  // namespace disttf::sim
