// One host's replica of a range of the parameter vector: its connections with trainers, the chief
// and the other host, and the passing of time. For gradients see roles/ps/core/shard.h, for
// trainers membership.h. Its parts:
//   range_host.h        the host's state, which the other parts share
//   push_receiver.h     receives gradients
//   trainer_requests.h  other frames of trainers
//   run_start.h         the chief begins a run: its configuration, its state
//   replica_roles.h     replicas: the role of this host, as the chief assigns it, and the other
//   host
//
// A state machine. Its calls report events with their time; it puts effects into the outbox, which
// the caller empties after each call (but for queries). It does not handle the bytes of tensors: it
// says where the body of a frame goes, and is called when the body has been read.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "net/wire/frame.h"
#include "roles/ps/core/connection_map.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/peer_connection.h"
#include "roles/ps/core/process_order.h"
#include "roles/ps/core/push_receiver.h"
#include "roles/ps/core/range_host.h"
#include "roles/ps/core/replica_roles.h"
#include "roles/ps/core/run_start.h"
#include "roles/ps/core/trainer_requests.h"
#include "run/monitor/core/task_metrics.h"
#include "run/task.h"

namespace disttf::roles {

class RangeReplica {
 public:
  // `task` must outlive it. `replica`: 0, the range is this ps's own; 1, it is that of the
  // preceding ps. `make_arena` and `threads`: as RangeState's. `order`: of the ps; it must outlive
  // this range, which adds to it. The caller rejects HELLOs of replaced processes.
  RangeReplica(const Task& task, std::uint8_t replica, std::size_t threads,
               RangeState::MakeArena make_arena, ProcessOrder& order, Clock::time_point now)
      : host_(task, replica, threads, std::move(make_arena), order, now) {}

  // --- connections

  // Returns the answer to a HELLO of this cluster.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  // The peer of a step, view, replica or evaluator's channel has been welcomed. `peer`: its name in
  // messages. `is_candidate`: it is a candidate's step channel (PsCore), which may PUBLISH, or end
  // a run that another ps calls over. `order` then learns of the process, and let_in() is to
  // follow. Returns false if nothing is to be read from it.
  bool connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                 Clock::time_point now, bool is_candidate = false);
  // The candidate of this step channel is the chief from now on.
  void let_in(ConnectionId id, Clock::time_point now);
  // The other host was reached over a replica channel, after may_fill().
  void reached(ConnectionId id, Clock::time_point now);
  // A frame's header has arrived. `in_place`: where its body lies, if it need not be read. The body
  // is then read there until the frame is answered, unless the plan says where to copy it.
  BodyPlan header(ConnectionId id, const net::FrameHeader& header, Clock::time_point now,
                  const net::BodyInPlace& in_place = {});
  // The part that the last plan asked for has been read.
  BodyPlan body(ConnectionId id, Clock::time_point now);
  // As RunStart's, of the frame that is being read from this connection.
  [[nodiscard]] std::optional<RunStart::Beginning> run_to_begin(ConnectionId id);
  // The update of this entry, which this host sent to the other one, lies in memory that outlives
  // this process.
  void gave(ConnectionId to, ReplicationLog::Index entry, Clock::time_point now);
  // The connection has closed; what it was sending is incomplete. If it was the primary's,
  // REQUIRES: header() has been called for everything that it left in memory.
  void closed(ConnectionId id, Clock::time_point now);
  // Returns whether it is the connection of the primary that fills this host's copy.
  [[nodiscard]] bool follows(ConnectionId id) const noexcept {
    return id != 0 && id == host_.primary;
  }

  // A control channel has opened; has sent a heartbeat with the trainer's generation; has closed.
  // record_heartbeat() returns why this process must leave the run, if it was replaced while it was
  // disconnected.
  void attach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now);
  [[nodiscard]] std::optional<std::string> record_heartbeat(const net::Hello& hello,
                                                            net::Generation generation,
                                                            Clock::time_point now);
  void detach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now);

  // --- time

  // `missed`: how much of the time until now this process was suspended.
  void forgive(Clock::duration missed, Clock::time_point now);
  // Closes connections whose heartbeat timeout has expired; and those of all trainers if this host
  // seems to have been replaced meanwhile.
  void close_timed_out(Clock::time_point now);
  void send_heartbeats(Clock::time_point now);
  // As RangeHost's.
  void check_end(Clock::time_point now);
  // Returns the sentence about a trainer whose disconnection ends the run, if there is one.
  [[nodiscard]] std::optional<std::string> overdue(Clock::time_point now) const;

  // --- the end

  // Ends this range's part without further waiting: a signal has arrived, or the chief is overdue.
  // REQUIRES: the run is over.
  void end_now(Clock::time_point now);
  // The run has failed: refuses all connected trainers and evaluators with the reason.
  void refuse_all(const net::Refusal& verdict);
  // As ReplicaRoles'.
  void lose_state(Clock::time_point now);
  void leave_views(Clock::time_point now);

  // --- parts

  [[nodiscard]] const RangeHost& host() const noexcept { return host_; }
  // The run of this range. (Snapshot shards are requested there.)
  [[nodiscard]] RangeState& state() noexcept { return host_.state; }
  [[nodiscard]] const RangeState& state() const noexcept { return host_.state; }
  [[nodiscard]] PushReceiver& pushes() noexcept { return pushes_; }
  [[nodiscard]] RunStart& start() noexcept { return start_; }
  [[nodiscard]] ReplicaRoles& roles() noexcept { return roles_; }
  // If it is_awaited() after a call, that call made a measured step; made() is then to be called
  // with the time of its end.
  [[nodiscard]] StepTimes& times() noexcept { return host_.times; }
  [[nodiscard]] Outbox& out() noexcept { return host_.out; }
  // Returns the shard's counters, the trainers present, and the measured steps since the last call.
  // The fields about the process stay empty.
  [[nodiscard]] PsMetrics take_metrics();

 private:
  using Role = PeerConnection::Role;

  // Registers a trainer's step channel.
  void join(const PeerConnection& trainer);
  // Registers the connection. Returns whether it makes a disconnected trainer present.
  bool attach(ConnectionId id, const net::Hello& hello);
  // The trainer has lost its step channel.
  void trainer_left(std::size_t rank);
  // Logs the loss once the trainer's process has no connection left.
  void log_lost(std::size_t rank);
  BodyPlan trainer_header(PeerConnection& from);
  BodyPlan candidate_header(PeerConnection& from);
  BodyPlan evaluator_header(PeerConnection& from);

  RangeHost host_;
  ConnectionMap<PeerConnection> connections_;
  PushReceiver pushes_{host_, connections_};
  TrainerRequests requests_{host_};
  RunStart start_{host_};
  ReplicaRoles roles_{host_};
};

}  // namespace disttf::roles
