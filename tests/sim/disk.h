// The disk that holds the --train_dir of a simulated cluster. The product's own store writes
// checkpoints to a file system that loses what was not synced. The class also checks the stored
// data.
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
#include "run/run_config.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/data/simulated_file_system.h"
#include "tests/sim/world.h"

namespace disttf::sim {

// Thrown when a fault kills a process at an operation on the disk.
struct KilledAtDisk {
  bool silently = false;  // together with its machine, which loses what was not synced
};

class SimulatedDisk {
 public:
  // `ps`: the number of ps.
  SimulatedDisk(World& world, const roles::RunConfig& config, std::size_t ps);

  // --- what tasks do

  // Opens a process's own store on this disk.
  [[nodiscard]] roles::CheckpointStore open();
  // Runs `what`, which uses such a store. Passes its exceptions on. Throws KilledAtDisk if a fault
  // kills the process.
  void use(const std::function<void()>& what);
  // A state of that step, or a range of one, is about to be written.
  void is_written(std::uint64_t step, const roles::ShardView& part);
  // Its writer has been notified that the state is saved.
  void was_saved(std::uint64_t step);
  // A ps reports to the chief that it has written this file of a save. From then on a power cut
  // must not remove the file's name or contents.
  void shard_was_reported(const roles::SaveId& id, const std::string& file);
  // Returns the newest step whose checkpoint is saved and has not been corrupted since.
  [[nodiscard]] std::uint64_t saved() const noexcept { return saved_; }
  // Returns the newest state on the disk. Checks invariant 19. Throws std::system_error while the
  // store is unavailable.
  [[nodiscard]] std::optional<roles::TrainingState> newest();

  // --- what an evaluator of the directory does

  // Returns the checkpoints in the directory, newest first. Throws std::system_error while the
  // store is unavailable.
  [[nodiscard]] std::vector<roles::CheckpointName> names();
  // Reads the index of one of them. Throws as roles::CheckpointReader does.
  [[nodiscard]] roles::CheckpointReader open(const roles::CheckpointName& name);
  // A whole checkpoint was read. Checks invariant 19.
  void was_read(const std::string& who, const roles::TrainingState& state);
  // A checkpoint was rejected as damaged. Checks that it is no intact checkpoint of the directory.
  void was_refused(const std::string& who, const roles::CheckpointName& name);

  // --- faults

  // At the nth operation from now on, kills the process that makes it, or its machine.
  void kill_at(std::size_t operation, bool silently);
  // That operation fails, and the next ones, `times` in all.
  void fail_at(std::size_t operation, std::errc error, std::size_t times);
  // Cuts the power of the machine that writes.
  void lose_power();
  // Flips a bit in a file of an intact checkpoint, if another checkpoint exists besides it. Returns
  // false if there is none.
  bool rot(std::uint64_t which);
  // Until mount(), an empty directory lies at the same path. Returns false if it does already.
  bool unmount();
  void mount();
  // Every operation fails until come_back(). Returns false if that is so already.
  bool go_away();
  void come_back();
  // Shifts the file system's clock by so much from now on.
  void step_clock(std::chrono::seconds by) { clock_step_ += by; }

  [[nodiscard]] const math::ParameterLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::string& config_json() const noexcept { return config_json_; }

 private:
  // Checks what can be read after a crash, as a new process would read it.
  void check();
  void check(const std::optional<roles::LoadedCheckpoint>& loaded);
  void set_time();
  // Returns whether the state was saved, in one piece or by ranges.
  [[nodiscard]] bool was_saved(const roles::TrainingState& state) const;
  [[nodiscard]] bool was_written(std::uint64_t step, const roles::ShardView& all,
                                 const math::Range& range) const;

  World& world_;
  const std::size_t ps_;
  const std::string config_json_;
  const math::ParameterLayout layout_;
  data::test::SimulatedFileSystem files_;
  const roles::CheckpointStore store_;
  std::optional<bool> kill_;  // an armed kill: whether it takes the machine, too
  std::uint64_t cuts_ = 0;    // power cuts so far
  std::chrono::seconds clock_step_{0};
  // By step and bounds of the range: sums of what was written. What is read must equal one of them.
  using Part = std::tuple<std::uint64_t, std::size_t, std::size_t>;
  std::map<Part, std::set<std::uint64_t>> written_;
  // The newest step whose checkpoint is saved and has not been corrupted since.
  std::uint64_t saved_ = 0;
  // While it is unmounted: the disk's contents, and the newest saved step among them.
  std::optional<data::test::DiskState> unmounted_;
  std::uint64_t saved_below_ = 0;
  bool is_away_ = false;
};

// Returns the whole state as one part.
[[nodiscard]] roles::ShardView view_of(const roles::TrainingState& state);

}  // namespace disttf::sim
