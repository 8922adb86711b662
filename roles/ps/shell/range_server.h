// A range of the parameter vector as a ps serves it: the shell of roles/ps/core/range_replica.h. It
// reads frames, hands them to the core, and carries out the core's effects. It also handles two
// things that the core does not: the memory in which the parameters lie, and writing a snapshot
// shard to a file.
//   range_server.cc           connections, and the core's effects
//   range_server_snapshots.cc      the chief's requests for snapshot shards
//
// Everything runs on the ps's only thread. For the process see roles/ps/shell/ps_process.h.
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/memory/parameter_memory.h"
#include "roles/ps/core/range_replica.h"
#include "roles/ps/shell/ps_io.h"
#include "roles/ps/shell/range_meter.h"
#include "run/process/tensor_memory.h"
#include "run/task.h"
#include "storage/checkpoint/shell/shard_writer.h"

namespace disttf::roles {

class ParameterServer;

class RangeServer {
 public:
  // Both must outlive it; `core` is one of the process's ranges.
  RangeServer(ParameterServer& process, RangeReplica& core);
  RangeServer(const RangeServer&) = delete;
  RangeServer& operator=(const RangeServer&) = delete;

  // Serves the frames of any channel but a state channel; serves a state channel, which requests
  // snapshot shards. Both return when the channel has closed.
  asio::awaitable<void> serve_accepted(ConnectionId id, ConnectionPtr connection);
  asio::awaitable<void> serve_snapshots(ConnectionPtr connection);

  // Allocates memory for the core's shard. Throws Failure if the machine has less than the run
  // takes.
  [[nodiscard]] Arena make_arena(const RunConfig& config, math::Range range);

  // Sets and clears the parked flag that trainers and the range's other host see; polls what they
  // have left in memory. See net::InPlaceMemory.
  void set_parked(bool parked) noexcept;
  bool poll() noexcept;
  // Copies a piece of an incomplete snapshot shard. Returns false if there is none.
  bool copy_snapshot();

  [[nodiscard]] RangeMeter& meter() noexcept { return meter_; }

  // The core's effects.
  void apply(SendFrame& effect);
  void apply(const CloseConnection& effect);
  void apply(const FinishConnection& effect);
  void apply(RefuseConnection& effect);
  void apply(const Note& effect);
  void apply(const ConnectToBackup& effect);
  void apply(const DrainConnections& effect);

 private:
  // Serves the frames of a connection until it closes.
  asio::awaitable<void> serve_frames(ConnectionId id, ConnectionPtr connection);
  // Hands the core all updates that the primary has left in memory unread. The primary can hand off
  // nothing after that.
  void take_rest(ConnectionId primary);
  // Call the core.
  BodyPlan header_came(ConnectionId id, const net::FrameHeader& header,
                       const net::BodyInPlace& in_place);
  BodyPlan body_came(ConnectionId id);
  // Reads the body of a frame as the core plans it. Returns false if the connection was refused or
  // broke. `publishes`: the body is a configuration.
  asio::awaitable<bool> read_body(ConnectionId id, const ConnectionPtr& connection, BodyPlan plan,
                                  bool publishes);
  // Completes a snapshot shard. Returns nullptr if it was lost or never taken, or if `asker` has
  // closed.
  asio::awaitable<std::shared_ptr<const SnapshotShard>> whole_snapshot(
      const net::FrameConnection& asker, std::uint64_t name, net::Generation generation);
  // Copies `snapshot` to `memory` for as long as `asker` is open, and returns where it lies. Steps
  // are made between two pieces. REQUIRES: there is room for it.
  asio::awaitable<std::span<const std::byte>> left_in(const net::InPlaceMemory& memory,
                                                      const net::FrameConnection& asker,
                                                      const SnapshotShard& snapshot);
  [[nodiscard]] std::size_t state_bytes() const;  // 0: there is no shard
  asio::awaitable<bool> write_snapshot_shard(const ConnectionPtr& connection,
                                             const net::FrameHeader& header);
  // Waits, with heartbeats to the chief, until no file is being written. Returns false if the chief
  // is lost.
  asio::awaitable<bool> writer_is_free(const ConnectionPtr& connection, std::uint64_t request_id);
  // Connects to the other host and fills it, for as long as this one is the primary.
  asio::awaitable<void> keep_backup();

  // If the frame that has been read begins a run with a large shard, makes the shard on another
  // thread, so that this one goes on answering. Returns when it is ready, or could not be made.
  asio::awaitable<void> prepare_shard(ConnectionId id);
  struct MadeShard {
    std::shared_ptr<net::InPlaceMemory> memory;
    std::shared_ptr<Shard> shard;
  };
  // Callable from any thread. Throws std::bad_alloc.
  [[nodiscard]] MadeShard make_shard(const RunConfig& config, math::Range range);
  [[nodiscard]] Arena arena_in(const std::shared_ptr<net::InPlaceMemory>& memory,
                               std::size_t floats);
  void release_memory();

  // Memory.
  [[nodiscard]] net::InPlaceTerms terms_of(std::size_t rank) const;
  [[nodiscard]] net::InPlaceTerms terms_of_primary() const;
  void offer_memory(const ConnectionPtr& backup);
  [[nodiscard]] std::span<float> place_of_update();  // see Arena
  [[nodiscard]] UpdateShape update_shape() const;    // REQUIRES: there is a shard

  // Always false, so that handlers can `return refuse(...)`.
  bool refuse(const ConnectionPtr& connection, const net::FrameHeader& header, ExitCode code,
              const std::string& sentence);

  ParameterServer& process_;
  PsIo& io_;          // of the process
  const Task& task_;  // likewise
  RangeReplica& core_;
  RangeMeter meter_;
  // One per range: with replicas a ps may serve two ranges, which write one checkpoint at the same
  // time.
  const std::unique_ptr<ShardFileWriter> writer_;  // posts to the process's context
  // The memory of the core's newest shard; null if the shard has allocated its own.
  std::shared_ptr<net::InPlaceMemory> memory_;
  std::weak_ptr<net::FrameConnection> backup_;  // the one that was offered memory last
  UpdateShape updates_;                         // the shape of its updates
  std::size_t updates_since_state_ = 0;         // see updates_per_state()
  bool has_logged_way_ = false;                 // logged how updates reach the current backup
  const std::unique_ptr<Alarm> shard_is_made_;  // rings when one has been made
  std::shared_ptr<void> maker_;                 // the thread that makes a shard; null: none does
};

}  // namespace disttf::roles
