// A distributed snapshot: makes a checkpoint of the snapshot shards of all ps at one step.
//
// Collected: the chief fetches the shards from one ps after the other. Sharded: it first checks
// that all ps have the same snapshot. Then it requests each ps to write its shard, and waits for
// all of them. Then the files become a checkpoint, or are removed.
//
// A state machine: begin(), and then the result of each request, with the time. Each call returns
// the next request, until that is SnapshotDone. One snapshot at a time. It does not handle the
// bytes of the ranges. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "run/output_options.h"
#include "storage/checkpoint/core/checkpoint_store.h"

namespace disttf::roles {

// Identifies a snapshot.
struct SnapshotRequest {
  using TimePoint = std::chrono::steady_clock::time_point;
  std::uint64_t sequence = 0;  // of the push that requested it
  net::Generation generation = 0;
  bool now = false;   // the current state instead of a kept one; `sequence` is then 0
  bool again = true;  // while the state changes, ask again until `deadline`
  TimePoint deadline = TimePoint::max();
};

// --- requests

// Open a state channel to this host of the ps's range; then connected().
struct ConnectToHost {
  std::size_t ps = 0;
  std::uint8_t replica = 0;
};
// Ask the ps over its channel whether it has the snapshot, or takes it now; then found(). `fetch`:
// also receive its values.
struct FindSnapshot {
  std::size_t ps = 0;
  bool fetch = false;
};
// Tell the ps to begin writing, then told().
struct RequestShardWrite {
  std::size_t ps = 0;
  SaveId id;
};
// Wait until it has written, at most until `deadline`; then written(). A ps that sends too much or
// nothing counts as lost.
struct AwaitWritten {
  std::size_t ps = 0;
  SnapshotRequest::TimePoint deadline;
};
// All ranges have been fetched: keep them, and save them if there is a --train_dir; then stored().
struct KeepState {
  std::uint64_t step = 0;
  std::uint64_t attempt = 0;  // see SaveId
};
// Make a checkpoint of the files; then stored().
struct CommitShards {
  SaveId id;
  std::vector<ShardFile> files;
};
// Remove the files written so far; then discarded().
struct DiscardShards {
  SaveId id;
};
// Close all channels, and wait until `until` at most; then paused().
struct PauseSnapshot {
  SnapshotRequest::TimePoint until;
};
// Close all channels; but after a stored snapshot keep them for the next one.
struct SnapshotDone {
  // False: a ps has lost the snapshot, or has a newer one, and the next snapshot will do; or the
  // last save of a run has failed for the first time.
  bool is_done = false;
  std::optional<std::uint64_t> step = {};  // the step that was stored
  std::string why_not = {};                // the reason, if it failed
};

using SnapshotAction =
    std::variant<ConnectToHost, FindSnapshot, RequestShardWrite, AwaitWritten, KeepState,
                 CommitShards, DiscardShards, PauseSnapshot, SnapshotDone>;

// --- results

// The result of an attempt to connect.
struct HostContact {
  enum class Kind : std::uint8_t {
    kWelcomed,
    kTurnedAway,  // no task listens there, or the one that does is about to end
    kUnreachable,
  };
  Kind kind = Kind::kUnreachable;
  net::ReplicaRole replica_role = net::ReplicaRole::kOnly;  // if welcomed
  net::ShardState state = net::ShardState::kEmpty;          // if welcomed
};

struct ShardNotWritten {
  bool is_lost = false;  // the ps is lost; false: its disk refused
  std::string sentence;
};

class SnapshotCoordinator {
 public:
  using TimePoint = SnapshotRequest::TimePoint;
  struct Options {
    std::vector<std::string> ps;  // their names in sentences
    bool replicated = false;      // each range has a second host
    bool sharded = false;
    bool same_step = true;  // the ps must all be at one step
  };

  // `seed`: of the saves' numbers, different in each process.
  SnapshotCoordinator(Options options, std::uint64_t seed)
      : options_(std::move(options)), engine_(seed), is_connected_(options_.ps.size()) {}

  SnapshotAction begin(const SnapshotRequest& request);
  SnapshotAction connected(const HostContact& contact, TimePoint now);
  // `step`: nullopt if the ps does not have the snapshot, or has gone.
  SnapshotAction found(std::optional<std::uint64_t> step, TimePoint now);
  // `why_not`: the request could not be sent, so the ps counts as lost.
  SnapshotAction told(const std::optional<std::string>& why_not);
  SnapshotAction written(std::variant<ShardFile, ShardNotWritten> result);
  SnapshotAction stored();
  SnapshotAction discarded(TimePoint now);
  SnapshotAction paused();
  // The last request could not be carried out at all.
  SnapshotAction failed(const std::string& sentence);

 private:
  struct Failure {
    bool is_lost = false;
    std::string sentence;
  };
  SnapshotAction begin_with(std::size_t ps);
  SnapshotAction connect(std::size_t ps);
  void disconnect() { is_connected_.assign(options_.ps.size(), false); }
  SnapshotAction await_next();
  SnapshotAction not_now(TimePoint now);
  SnapshotAction fail(const std::string& sentence);

  const Options options_;
  std::mt19937_64 engine_;
  std::vector<bool> is_connected_;  // by ps: it has sent a snapshot, and its channel is open
  SnapshotRequest request_;
  std::size_t ps_ = 0;  // of the last request
  std::uint8_t replica_ = 0;
  bool is_lost_ = false;    // no host of the range seen so far has its state
  std::uint64_t step_ = 0;  // of ps 0
  // Sharded.
  SaveId id_;
  std::size_t told_ = 0;  // ps that are writing or have written
  TimePoint written_by_;
  std::vector<ShardFile> files_;
  std::optional<Failure> failure_;
  bool has_files_ = false;  // some ps may have written
  bool has_failed_at_the_end_ = false;
};

// When a snapshot is due.
class SnapshotSchedule {
 public:
  using TimePoint = SnapshotRequest::TimePoint;
  SnapshotSchedule(const CheckpointOptions& options, std::uint64_t train_steps, TimePoint now)
      : save_steps_(options.save_steps),
        save_secs_(options.save_secs),
        train_steps_(train_steps),
        next_time_(now + options.save_secs) {}

  // Returns whether the push that makes `step` is to request a snapshot: one is due, and none is in
  // progress (`is_busy`).
  [[nodiscard]] bool wants(std::uint64_t step, bool is_busy, TimePoint now);
  // A snapshot was requested: it is due now.
  void ask() noexcept { is_due_ = true; }

 private:
  const std::uint64_t save_steps_;
  const std::chrono::seconds save_secs_;
  const std::uint64_t train_steps_;
  TimePoint next_time_;
  bool is_due_ = false;
};

}  // namespace disttf::roles
