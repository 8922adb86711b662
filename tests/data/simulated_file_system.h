// A disk in memory that loses unsynced changes as a test requests: lost or torn pages, names added
// or removed in any order, failing operations, flipped bits.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "data/file_system.h"

namespace disttf::data::test {

// The power has failed: nothing that the process does from now on has an effect.
class PowerCut : public std::runtime_error {
 public:
  PowerCut() : std::runtime_error("the power has failed") {}
};

// The contents of the disk, and which of them are durable. A value.
struct DiskState {
  using NodeId = std::size_t;
  using Names = std::map<std::string, NodeId>;
  using Contents = std::vector<std::uint8_t>;
  // A change of the names in a directory: `taken` was removed, `given` now refers to `node`; either
  // may be empty.
  struct Change {
    std::string taken;
    std::string given;
    NodeId node = 0;
  };
  struct Node {
    bool is_directory = false;
    std::int64_t last_write = 0;
    // A file.
    Contents contents = {};
    Contents durable_contents = {};
    bool is_synced = true;      // both contents are equal
    bool can_be_synced = true;  // no sync has failed
    // A directory.
    Names names = {};
    Names durable_names = {};
    std::vector<Change> pending = {};  // from durable_names to names
  };
  std::vector<Node> nodes = {Node{.is_directory = true}};  // the first is "/"

  // Returns the number of possible states after a power failure.
  [[nodiscard]] std::size_t outcomes() const;
  // Returns the state number `outcome` after a power failure. 0: no unsynced change is present. The
  // last one: all are present, though the contents of a file may be missing. REQUIRES: `outcome` <
  // outcomes().
  [[nodiscard]] DiskState after_power_cut(std::size_t outcome) const;
  // Returns a choice: a number below `ways`.
  using Choose = std::function<std::size_t(std::size_t ways)>;
  // The same for too many states to number: calls `choose` for each unsynced change (whether it is
  // present) and for each unsynced file (which contents it has).
  [[nodiscard]] DiskState after_power_cut(const Choose& choose) const;
};

class SimulatedFileSystem final : public FileSystem {
 public:
  explicit SimulatedFileSystem(DiskState state = {}) : state_(std::move(state)) {}

  // The power fails instead of operation number `operation`, counted from the next one as 0. Only
  // operations that change the disk count.
  void cut_power_at(std::size_t operation) { cut_at_ = operations_ + operation; }
  // Operation number `operation` and the ones after it fail, `times` in all; a failing write stores
  // half of its bytes.
  void fail_at(std::size_t operation, std::errc error, std::size_t times = 1) {
    fail_at_ = operations_ + operation;
    fails_ = times;
    error_ = error;
  }
  void stop_failing() { fail_at_.reset(); }
  [[nodiscard]] bool has_power() const noexcept { return has_power_; }
  // Restores power. If it never failed, only the writing process has died, and nothing that it did
  // is lost.
  void power_on() {
    has_power_ = true;
    cut_at_.reset();
  }
  void power_on(const DiskState::Choose& choose) {
    state_ = state_.after_power_cut(choose);
    power_on();
  }
  [[nodiscard]] std::size_t operations() const noexcept { return operations_; }
  [[nodiscard]] const DiskState& state() const noexcept { return state_; }
  // Flips a bit in the middle of the file.
  void rot(const Path& path);
  // Mounts another disk at "/" and returns the previous one.
  [[nodiscard]] DiskState mount(DiskState state) { return std::exchange(state_, std::move(state)); }
  // While the disk is away, every operation fails with EAGAIN, like one on a store that does not
  // answer; the contents stay.
  void set_away(bool is_away) noexcept { is_away_ = is_away; }
  // Sets the time, for now and for later writes.
  void set_now(std::int64_t seconds) { now_ = seconds; }

  [[nodiscard]] std::unique_ptr<NewFile> create(const Path& target) override;
  [[nodiscard]] std::unique_ptr<OpenFile> open(const Path& path) override;
  [[nodiscard]] std::uint64_t size_of(const Path& path, std::error_code& error) override;
  [[nodiscard]] std::filesystem::file_time_type last_write(const Path& path) override;
  [[nodiscard]] std::filesystem::file_time_type now(const Path& directory) override;
  [[nodiscard]] std::vector<std::string> names_in(const Path& directory,
                                                  std::error_code& error) override;
  bool create_directory(const Path& path, std::error_code& error) override;
  std::error_code rename(const Path& from, const Path& to) override;
  std::error_code link(const Path& from, const Path& to) override;
  std::error_code remove(const Path& path) override;
  void sync_directory(const Path& directory) override;

 private:
  friend class SimulatedNewFile;
  using Node = DiskState::Node;
  using NodeId = DiskState::NodeId;

  // Begins an operation and returns its injected error. Throws PowerCut.
  std::error_code begin();
  void expect_power() const;
  // Returns the error of reads while the disk is away.
  [[nodiscard]] std::error_code away() const;
  [[nodiscard]] std::optional<NodeId> find(const Path& path) const;
  // Returns the parent directory of `path`. Throws std::system_error.
  [[nodiscard]] NodeId parent(const Path& path) const;
  void change(NodeId directory, const DiskState::Change& change);

  DiskState state_;
  std::size_t operations_ = 0;
  std::optional<std::size_t> cut_at_;
  std::optional<std::size_t> fail_at_;
  std::size_t fails_ = 1;
  std::errc error_{};
  bool has_power_ = true;
  bool is_away_ = false;
  std::size_t temporaries_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace disttf::data::test
