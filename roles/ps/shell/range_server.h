// A range of the parameter vector as it is served by a ps: the shell of
// roles/ps/core/range_replica.h. It reads frames and hands them to the core, does what the core
// says, and knows two things that the core does not: what memory the parameters lie in, and how a
// cut is written to a file.
//   range_server.cc           connections, and the core's effects
//   range_server_cuts.cc      what the chief may ask for beside the steps: cuts
//
// Everything runs on the ps's one thread. The process that it belongs to is
// roles/ps/shell/ps_process.h.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/transport/parameter_memory.h"
#include "net/transport/server.h"
#include "roles/checkpoint/shell/shard_writer.h"
#include "roles/process/log.h"
#include "roles/process/tensor_memory.h"
#include "roles/ps/core/range_replica.h"
#include "roles/ps/shell/range_meter.h"
#include "roles/run/task.h"

namespace disttf::roles {

class ParameterServer;
using ConnectionPtr = std::shared_ptr<net::ServerConnection>;

class RangeServer {
 public:
  // Both must outlive it; `core` is one of the process's.
  RangeServer(ParameterServer& process, RangeReplica& core);
  ~RangeServer();
  RangeServer(const RangeServer&) = delete;
  RangeServer& operator=(const RangeServer&) = delete;

  // Frames of any channel but a state channel, which asks for cuts; either ends with it.
  asio::awaitable<void> serve_accepted(ConnectionId id, ConnectionPtr connection);
  asio::awaitable<void> serve_cuts(ConnectionPtr connection);

  // Memory for the core's shard. Throws Failure where the machine has less than the run takes.
  [[nodiscard]] Arena make_arena(const RunConfig& config, math::Range range);

  // Whether what trainers and the range's other host leave in memory is looked at; and a look, as
  // net::ParameterMemory's.
  void set_asleep(bool asleep) noexcept;
  bool look();
  // Copies a piece of a cut that is not whole yet. False: there is none.
  bool copy_cut();

  [[nodiscard]] RangeMeter& meter() noexcept { return meter_; }

  // What the core wants done.
  void apply(SendFrame& effect);
  void apply(const CloseConnection& effect);
  void apply(const FinishConnection& effect);
  void apply(RefuseConnection& effect);
  void apply(const Note& effect);
  void apply(const ReachOut& effect);
  void apply(const DrainConnections& effect);

 private:
  // What comes over it, until it is closed.
  asio::awaitable<void> serve_frames(ConnectionId id, ConnectionPtr connection);
  // The core is told all that the primary has left in memory and that has not been read. It gives
  // nothing from then on.
  void take_rest(ConnectionId primary);
  // The core is told.
  BodyPlan header_came(ConnectionId id, const net::FrameHeader& header,
                       const net::BodyInPlace& in_place);
  BodyPlan body_came(ConnectionId id);
  // The body of a frame, as the core plans it. False: the connection was refused, or broke.
  // `publishes`: it is a configuration.
  asio::awaitable<bool> read_body(ConnectionId id, const ConnectionPtr& connection, BodyPlan plan,
                                  bool publishes);
  // nullptr: it has been lost, or was never made; or `asker` is closed.
  asio::awaitable<std::shared_ptr<const Cut>> whole_cut(const net::ServerConnection& asker,
                                                        std::uint64_t name,
                                                        net::Generation generation);
  // Copied there, if `asker` stays open; steps are made between two pieces, too. REQUIRES: there is
  // room for it.
  asio::awaitable<std::span<const std::byte>> left_in(const net::ParameterMemory& memory,
                                                      const net::ServerConnection& asker,
                                                      const Cut& cut);
  [[nodiscard]] std::size_t state_bytes() const;  // 0: there is no shard
  asio::awaitable<bool> write_cut(const ConnectionPtr& connection, const net::FrameHeader& header);
  // Waits, with heartbeats to the chief, until no file is being written. False: the chief is gone.
  asio::awaitable<bool> writer_is_free(const ConnectionPtr& connection, std::uint64_t request_id);
  // Reaches the other host, and fills it, for as long as this one is the primary.
  asio::awaitable<void> keep_backup();

  // Where the frame that has been read begins a run with a large shard: makes that on another
  // thread, so that this one goes on answering. Returns when it is there, or cannot be.
  asio::awaitable<void> prepare_shard(ConnectionId id);
  struct MadeShard {
    std::shared_ptr<net::ParameterMemory> memory;
    std::shared_ptr<Shard> shard;
  };
  // Callable from any thread. Throws std::bad_alloc.
  [[nodiscard]] MadeShard make_shard(const RunConfig& config, math::Range range);
  [[nodiscard]] Arena arena_in(const std::shared_ptr<net::ParameterMemory>& memory,
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
  const Task& task_;  // the process's
  RangeReplica& core_;
  RangeMeter meter_;
  // Its own: with replicas a ps may serve two ranges, which are asked for one checkpoint at once.
  ShardWriter writer_;  // posts to the process's context
  // Of the core's newest shard; null: it has taken some of its own.
  std::shared_ptr<net::ParameterMemory> memory_;
  std::weak_ptr<net::ServerConnection> backup_;  // that was offered memory last
  UpdateShape updates_;                          // what it is told
  std::size_t updates_since_state_ = 0;          // see updates_per_state()
  bool has_told_way_ = false;                    // of the updates to the backup that is filled
  asio::steady_timer shard_is_made_;             // never expires: cancelled when one has been made
  std::thread maker_;                            // of a shard; joinable: one is being made
};

}  // namespace disttf::roles
