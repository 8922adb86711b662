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

#include "math/parameter_layout.h"
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
  // The newest that is there. Invariant 19.
  [[nodiscard]] std::optional<roles::TrainingState> newest();

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
  // What the file system takes for the present goes wrong by so much from now on.
  void step_clock(std::chrono::seconds by) { clock_step_ += by; }

  [[nodiscard]] const math::ParameterLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::string& config_json() const noexcept { return config_json_; }

 private:
  // Looks what can be read after a crash, as a new process would.
  void check();
  void check(const std::optional<roles::LoadedCheckpoint>& loaded);
  void set_time();
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
};

// All of it, as a part.
[[nodiscard]] roles::ShardView view_of(const roles::TrainingState& state);

}  // namespace disttf::sim
