// A distributed snapshot: brings together what every ps has kept, or has, of its range at one step,
// as a checkpoint. (The frames, and the ps, call what a ps keeps a cut.)
//
// Collected: the ranges are fetched one ps after the other. Sharded: all ps are found to have the
// same snapshot before any is told to write its range; all that were told are waited for; then the
// files become a checkpoint, or are removed.
//
// A state machine: begin(), and then whatever the last order has come to, each with the time; each
// returns the next order, until that is SnapshotDone. One snapshot at a time. No byte of the
// ranges passes through it. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "net/wire/generation.h"
#include "net/wire/handshake.h"
#include "roles/checkpoint/core/checkpoint_store.h"
#include "roles/run/checkpoint_options.h"

namespace disttf::roles {

// Which snapshot.
struct SnapshotRequest {
  using TimePoint = std::chrono::steady_clock::time_point;
  std::uint64_t sequence = 0;  // of the push that asked for it
  net::Generation generation = 0;
  bool now = false;   // the state as it is, rather than one that was kept; `sequence` is then 0
  bool again = true;  // a state that moves is asked for again, until `deadline`
  TimePoint deadline = TimePoint::max();
};

// --- orders

// Open a state channel to this host of the ps's range; connected() says what came of it.
struct ConnectToHost {
  std::size_t ps = 0;
  std::uint8_t replica = 0;
};
// Ask the ps, over its channel, whether it has the snapshot, or makes it now; then found(). Fetch:
// its values, too, into their places.
struct FindSnapshot {
  std::size_t ps = 0;
  bool fetch = false;
};
// Have the ps begin to write, then told().
struct TellToWrite {
  std::size_t ps = 0;
  SaveId id;
};
// Wait until it has, at most until then; then written(). Whoever says too much or nothing is lost.
struct AwaitWritten {
  std::size_t ps = 0;
  SnapshotRequest::TimePoint deadline;
};
// All ranges have been fetched: keep them, and save them where that is wanted; then stored().
struct KeepState {
  std::uint64_t step = 0;
  std::uint64_t attempt = 0;  // of SaveId
};
// Make a checkpoint of the files; then stored().
struct CommitShards {
  SaveId id;
  std::vector<ShardFile> files;
};
// Remove what was written; then discarded().
struct DiscardShards {
  SaveId id;
};
// Close what is open, and wait, at most until then; then paused().
struct PauseSnapshot {
  SnapshotRequest::TimePoint until;
};
// Close what is open; but where it was stored the channels are for the next snapshot, too.
struct SnapshotDone {
  // False: some ps has lost it or moved on. The next one will do.
  bool is_done = false;
  std::optional<std::uint64_t> step = {};  // it was stored
  std::string why_not = {};                // a sentence, if it failed
};

using SnapshotOrder =
    std::variant<ConnectToHost, FindSnapshot, TellToWrite, AwaitWritten, KeepState, CommitShards,
                 DiscardShards, PauseSnapshot, SnapshotDone>;

// --- what came of them

// Of an attempt to connect.
struct HostContact {
  enum class Kind : std::uint8_t {
    kWelcomed,
    kTurnedAway,  // nobody listens there, or who does, ends
    kUnreachable,
  };
  Kind kind = Kind::kUnreachable;
  net::Standing standing = net::Standing::kOnly;    // of one that is welcomed
  net::ShardState state = net::ShardState::kEmpty;  // the same
};

struct ShardNotWritten {
  bool is_lost = false;  // the ps, and not its disk
  std::string sentence;
};

class SnapshotCoordinator {
 public:
  using TimePoint = SnapshotRequest::TimePoint;
  struct Options {
    std::vector<std::string> ps;  // how sentences call them
    bool replicated = false;      // a range has a second host
    bool sharded = false;
    bool same_step = true;  // the ps must all be at one step
  };

  // `seed` of the saves' numbers: another one in each process.
  SnapshotCoordinator(Options options, std::uint64_t seed)
      : options_(std::move(options)), engine_(seed), is_connected_(options_.ps.size()) {}

  SnapshotOrder begin(const SnapshotRequest& request);
  SnapshotOrder connected(const HostContact& contact, TimePoint now);
  // `step`: nullopt, the ps does not have it, or is gone.
  SnapshotOrder found(std::optional<std::uint64_t> step, TimePoint now);
  // `why_not`: the ps could not be told, which means that it is lost.
  SnapshotOrder told(const std::optional<std::string>& why_not);
  SnapshotOrder written(std::variant<ShardFile, ShardNotWritten> result);
  SnapshotOrder stored();
  SnapshotOrder discarded(TimePoint now);
  SnapshotOrder paused();
  // The last order could not be carried out at all.
  SnapshotOrder failed(const std::string& sentence);

 private:
  struct Failure {
    bool is_lost = false;
    std::string sentence;
  };
  SnapshotOrder begin_with(std::size_t ps);
  SnapshotOrder connect(std::size_t ps);
  void disconnect() { is_connected_.assign(options_.ps.size(), false); }
  SnapshotOrder await_next();
  SnapshotOrder not_now(TimePoint now);
  SnapshotOrder fail(const std::string& sentence);

  const Options options_;
  std::mt19937_64 engine_;
  std::vector<bool> is_connected_;  // by ps: it has had a snapshot, and its channel was not closed
  SnapshotRequest request_;
  std::size_t ps_ = 0;  // that the last order is about
  std::uint8_t replica_ = 0;
  bool is_lost_ = false;    // so far no host of the range has its state any more
  std::uint64_t step_ = 0;  // of ps 0
  // Sharded.
  SaveId id_;
  std::size_t told_ = 0;  // ps that write, or have written
  TimePoint written_by_;
  std::vector<ShardFile> files_;
  std::optional<Failure> failure_;
  bool has_files_ = false;  // somebody may have written
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

  // Whether the push that makes `step` is to ask for one: one is due, and no other under way
  // (`is_busy`).
  [[nodiscard]] bool wants(std::uint64_t step, bool is_busy, TimePoint now);
  // Somebody has asked for one: it is due now.
  void ask() noexcept { is_due_ = true; }

 private:
  const std::uint64_t save_steps_;
  const std::chrono::seconds save_secs_;
  const std::uint64_t train_steps_;
  TimePoint next_time_;
  bool is_due_ = false;
};

}  // namespace disttf::roles
