// The disk that is --train_dir of a simulated cluster: checkpoints through the product's own store,
// onto a file system that loses what was not synced, and what must be true of what lies there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "math/parameter_layout.h"
#include "roles/checkpoint/core/checkpoint_reader.h"
#include "roles/checkpoint/core/checkpoint_store.h"
#include "roles/run/run_config.h"
#include "tests/data/simulated_file_system.h"
#include "tests/sim/world.h"

namespace disttf::sim {

// How a simulated process ends that a fault kills at an operation on the disk.
struct KilledAtDisk {
  bool silently = false;  // with its machine, which loses what was not synced
};

class SimulatedDisk {
 public:
  // `ps`: how many there are.
  SimulatedDisk(World& world, const roles::RunConfig& config, std::size_t ps);

  // --- what tasks do

  // A process's own store, on this disk.
  [[nodiscard]] roles::CheckpointStore open();
  // Does this with such a store. What it throws comes through, and KilledAtDisk, where the process
  // that does it is to die of it.
  void use(const std::function<void()>& what);
  // A state of that step is about to be written, or a range of one.
  void is_written(std::uint64_t step, const roles::ShardView& part);
  // Its writer has been told that it is saved.
  void was_saved(std::uint64_t step);
  // A ps reports to the chief that it has written this file of a save. A power cut must not take
  // the file's name or contents from then on.
  void shard_was_reported(const roles::SaveId& id, const std::string& file);
  // The newest step that is saved, and has not rotted since.
  [[nodiscard]] std::uint64_t saved() const noexcept { return saved_; }
  // The newest that is there. Invariant 19. Throws std::system_error while the store is away.
  [[nodiscard]] std::optional<roles::TrainingState> newest();

  // --- what an evaluator of the directory does

  // The checkpoints in it, newest first. Throws std::system_error while the store is away.
  [[nodiscard]] std::vector<roles::CheckpointName> names();
  // Reads the index of one of them. Throws as roles::CheckpointReader does.
  [[nodiscard]] roles::CheckpointReader open(const roles::CheckpointName& name);
  // It was read as a whole. Invariant 19.
  void was_read(const std::string& who, const roles::TrainingState& state);
  // It was refused as damaged: then it is no whole checkpoint of the directory.
  void was_refused(const std::string& who, const roles::CheckpointName& name);

  // --- faults

  // At the nth operation from now on the process that makes it is killed, or its machine lost.
  void kill_at(std::size_t operation, bool silently);
  // That operation fails, and so many in all.
  void fail_at(std::size_t operation, std::errc error, std::size_t times);
  // The machine that writes is lost: now.
  void lose_power();
  // A bit of a file flips, of a whole checkpoint besides which there is another one. False: there
  // is none.
  bool rot(std::uint64_t which);
  // Another directory, an empty one, lies at its path until mount(). False: one does already.
  bool unmount();
  void mount();
  // Every operation on it fails until come_back(). False: it is away already.
  bool go_away();
  void come_back();
  // What the file system takes for the present goes wrong by so much from now on.
  void step_clock(std::chrono::seconds by) { clock_step_ += by; }

  [[nodiscard]] const math::ParameterLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::string& config_json() const noexcept { return config_json_; }

 private:
  // Looks what can be read after a crash, as a new process would.
  void check();
  void check(const std::optional<roles::LoadedCheckpoint>& loaded);
  void set_time();
  // It is one that was saved, as a whole or by ranges.
  [[nodiscard]] bool was_saved(const roles::TrainingState& state) const;
  [[nodiscard]] bool was_written(std::uint64_t step, const roles::ShardView& all,
                                 const math::Range& range) const;

  World& world_;
  const std::size_t ps_;
  const std::string config_json_;
  const math::ParameterLayout layout_;
  data::test::SimulatedFileSystem files_;
  const roles::CheckpointStore store_;
  std::optional<bool> kill_;  // what is armed: whether silently
  std::uint64_t cuts_ = 0;    // of the power, so far
  std::chrono::seconds clock_step_{0};
  // By step and where the range begins and ends: sums of what was written. What is read is one.
  using Part = std::tuple<std::uint64_t, std::size_t, std::size_t>;
  std::map<Part, std::set<std::uint64_t>> written_;
  std::uint64_t saved_ = 0;  // the newest step that is saved, and has not rotted since
  // While it is unmounted: what lies on it, and which step of that is saved.
  std::optional<data::test::DiskState> unmounted_;
  std::uint64_t saved_below_ = 0;
  bool is_away_ = false;
};

// All of it, as a part.
[[nodiscard]] roles::ShardView view_of(const roles::TrainingState& state);

}  // namespace disttf::sim
