// A disk in memory that keeps of what was not synced only as much as a test wants: pages that are
// lost or torn, names that were given or taken in any order, operations that fail, bits that rot.
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

// The power has failed: what the process does from now on has no effect.
class PowerCut : public std::runtime_error {
 public:
  PowerCut() : std::runtime_error("the power has failed") {}
};

// All that lies on the disk, and what of it is durable. A value.
struct DiskState {
  using NodeId = std::size_t;
  using Names = std::map<std::string, NodeId>;
  using Contents = std::vector<std::uint8_t>;
  // What was done to the names in a directory: `taken` is gone, `given` is `node`; either may be
  // empty.
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
    bool is_synced = true;      // the two are alike
    bool can_be_synced = true;  // no sync has failed
    // A directory.
    Names names = {};
    Names durable_names = {};
    std::vector<Change> pending = {};  // from durable_names to names
  };
  std::vector<Node> nodes = {Node{.is_directory = true}};  // the first is "/"

  // In how many ways a power cut may leave it.
  [[nodiscard]] std::size_t outcomes() const;
  // REQUIRES: `outcome` < outcomes(). 0: nothing that was not synced is there. The last one:
  // everything is, though the contents of a file may not be.
  [[nodiscard]] DiskState after_power_cut(std::size_t outcome) const;
  // Chooses one of so many ways: a number below it.
  using Choose = std::function<std::size_t(std::size_t ways)>;
  // The same where there are too many outcomes to have numbers: of each change that was not synced
  // it is chosen whether it is there, of each such file what is.
  [[nodiscard]] DiskState after_power_cut(const Choose& choose) const;
};

class SimulatedFileSystem final : public FileSystem {
 public:
  explicit SimulatedFileSystem(DiskState state = {}) : state_(std::move(state)) {}

  // The power fails at operation number `operation` from now on, counted from 0, which is not made.
  // Only what changes the disk counts.
  void cut_power_at(std::size_t operation) { cut_at_ = operations_ + operation; }
  // That operation fails, and so do those after it, `times` in all; what is written by one, comes
  // half.
  void fail_at(std::size_t operation, std::errc error, std::size_t times = 1) {
    fail_at_ = operations_ + operation;
    fails_ = times;
    error_ = error;
  }
  void stop_failing() { fail_at_.reset(); }
  [[nodiscard]] bool has_power() const noexcept { return has_power_; }
  // The power is back, or was there all the time, and only the process that wrote has died: then
  // nothing is lost that it had done.
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
  // A bit flips in the middle of the file.
  void rot(const Path& path);
  // Another disk lies at "/" from now on. Returns what lay there.
  [[nodiscard]] DiskState mount(DiskState state) { return std::exchange(state_, std::move(state)); }
  // While it is away, every operation fails with EAGAIN, as one on a store does that gives no
  // answer; what lies there stays as it is.
  void set_away(bool is_away) noexcept { is_away_ = is_away; }
  // Now and for what is written from now on.
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

  // Begins an operation: what it is to fail with. Throws PowerCut.
  std::error_code begin();
  void expect_power() const;
  // What reads fail with while it is away.
  [[nodiscard]] std::error_code away() const;
  [[nodiscard]] std::optional<NodeId> find(const Path& path) const;
  // The directory that `path` is in. Throws std::system_error.
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
