// One host's replica of a range of the parameter vector: its connections with trainers, the chief
// and the other host, and the answers to their frames. For gradients see roles/ps/core/shard.h, for
// trainers membership.h.
//   range_replica.cc           connections, and the passing of time
//   range_replica_run.cc       the chief begins a run: its configuration, its state
//   range_replica_requests.cc  requests of trainers, one handler for each frame kind
//   range_replica_end.cc       frames about the end of a run; see run_end.h for who may leave when
//   range_replica_views.cc     replicas: the replica role of this host, as the chief assigns it
//   range_replica_backup.cc    replicas: the copy that the other host fills and updates
//   range_replica_evaluator.cc requests of evaluators, for which no other task waits
// and its parts:
//   range_state.h      the run of this range, and the state that it holds
//   push_receiver.h    receives gradients
//   trainer_answers.h  when a waiting trainer is answered, and with what
//   backup_sender.h    replicas: fills the other host, and sends it each update
//   backup_receiver.h  replicas: reads what the primary sends
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
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/wire/generation.h"
#include "net/wire/replication.h"
#include "net/wire/snapshot_messages.h"
#include "roles/monitor/core/task_metrics.h"
#include "roles/ps/core/backup_receiver.h"
#include "roles/ps/core/backup_sender.h"
#include "roles/ps/core/connection_map.h"
#include "roles/ps/core/membership.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/peer_connection.h"
#include "roles/ps/core/process_order.h"
#include "roles/ps/core/push_receiver.h"
#include "roles/ps/core/range_state.h"
#include "roles/ps/core/run_end.h"
#include "roles/ps/core/step_times.h"
#include "roles/ps/core/trainer_answers.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"

namespace disttf::roles {

class RangeReplica {
 public:
  // `task` must outlive it. `replica`: 0, the range is this ps's own; 1, it is that of the
  // preceding ps. `make_arena` and `threads`: as RangeState's. `order`: of the ps; it must outlive
  // this range, which adds to it. The caller rejects HELLOs of replaced processes.
  RangeReplica(const Task& task, std::uint8_t replica, std::size_t threads,
               RangeState::MakeArena make_arena, ProcessOrder& order, Clock::time_point now);
  // Not copyable: its members hold references to one another.
  RangeReplica(const RangeReplica&) = delete;
  RangeReplica& operator=(const RangeReplica&) = delete;
  ~RangeReplica() = default;

  // --- connections

  // Returns the answer to a HELLO of this cluster.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  // Returns whether this host is the primary and its copy is older than the last answer that the
  // trainer of this HELLO has received. It happens if the previous primary had gone on alone and
  // was lost together with the chief that had permitted it: the next chief then takes this copy for
  // a complete one.
  [[nodiscard]] bool lacks(const net::Hello& hello) const;
  // Drops that copy: the chief is to restore all ps in a new generation.
  void lose_state(Clock::time_point now);
  // The peer of a step, view, replica or evaluator's channel has been welcomed. `peer`: its name in
  // messages. `is_candidate`: it is a candidate's step channel (PsCore), which may PUBLISH, or end
  // a run that another ps calls over. `order` then learns of the process, and let_in() is to
  // follow. Returns false if nothing is to be read from it.
  bool connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                 Clock::time_point now, bool is_candidate = false);
  // The candidate of this step channel is the chief from now on.
  void let_in(ConnectionId id, Clock::time_point now);
  // Returns whether a chief is connected and leads a run without replicas here.
  [[nodiscard]] bool is_led() const {
    return is_training() && trains_without_replicas() && trainers_[0].alive();
  }
  // The other host was reached over a replica channel, after may_fill().
  void reached(ConnectionId id, Clock::time_point now);
  // A frame's header has arrived. `in_place`: where its body lies, if it need not be read. The body
  // is then read there until the frame is answered, unless the plan says where to copy it.
  BodyPlan header(ConnectionId id, const net::FrameHeader& header, Clock::time_point now,
                  const net::BodyInPlace& in_place = {});
  // The part that the last plan asked for has been read.
  BodyPlan body(ConnectionId id, Clock::time_point now);
  // Returns the run that body() would begin here, if there is no shard yet. The shell may then make
  // the shard off the event loop (RangeState::prepared()), since a large one takes seconds.
  struct Beginning {
    std::string json;
    RunConfig config;
  };
  [[nodiscard]] std::optional<Beginning> run_to_begin(ConnectionId id);
  // The update of this entry, which this host sent to the other one, lies in memory that outlives
  // this process.
  void gave(ConnectionId to, ReplicationLog::Index entry, Clock::time_point now);
  // The connection has closed; what it was sending is incomplete. If it was the primary's,
  // REQUIRES: header() has been called for everything that it left in memory.
  void closed(ConnectionId id, Clock::time_point now);
  // Sets the function that drains what the primary has left in memory before this host closes that
  // connection itself to take its place; from then on the primary can hand off nothing more. (It
  // calls header() from within another call.) To be set if the primary can hand off updates.
  using TakeRest = std::function<void(ConnectionId)>;
  void take_rest_with(TakeRest take_rest) { take_rest_ = std::move(take_rest); }
  // Returns whether it is the connection of the primary that fills this host's copy.
  [[nodiscard]] bool follows(ConnectionId id) const noexcept { return id != 0 && id == primary_; }

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
  // Answers the trainers that wait for the end of the run, and ends this range's part when it is
  // due.
  void check_end(Clock::time_point now);
  // Returns the sentence about a trainer whose disconnection ends the run, if there is one.
  [[nodiscard]] std::optional<std::string> overdue(Clock::time_point now) const;

  // --- the end

  // Ends this range's part without further waiting: a signal has arrived, or the chief is overdue.
  // REQUIRES: the run is over.
  void end_now(Clock::time_point now);
  // The run has failed: refuses all connected trainers and evaluators with the reason.
  void refuse_all(const net::Refusal& verdict);
  // Returns whether the chief has ended the run.
  [[nodiscard]] bool is_finishing() const noexcept { return end_.is_over(); }
  [[nodiscard]] bool has_ended() const noexcept { return end_.has_ended(); }
  [[nodiscard]] net::ReplicaRole replica_role() const noexcept { return replica_role_; }
  // Returns the newest view that the chief has sent.
  [[nodiscard]] const net::View& view() const noexcept { return view_; }
  // Returns whether the shard holds a whole state, restored or copied. (False once the run has
  // failed here.)
  [[nodiscard]] bool holds_state() const noexcept {
    return !verdict_ && (is_backup() ? copy_ && copy_->is_filled() : state_.is_restored());
  }
  // Returns whether that state is of this generation or a newer one, or the run is over.
  [[nodiscard]] bool is_as_new_as(net::Generation generation) const noexcept {
    return is_finishing() || (holds_state() && state_.generation() >= generation);
  }
  // Returns whether it is in a run without replicas. (A published configuration does not suffice:
  // another ps may refuse the chief that published it.)
  [[nodiscard]] bool trains_without_replicas() const noexcept {
    return replica_role_ == net::ReplicaRole::kOnly && !awaits_state();
  }
  // Returns whether it holds nothing of a run, not even part of a copy.
  [[nodiscard]] bool is_empty() const noexcept { return awaits_state() && !copy_; }
  // Drops the views of a chief whose run did not begin here, for a chief whose run has no replicas.
  // REQUIRES: is_empty().
  void leave_views(Clock::time_point now);
  // `leave` drops the views at all ranges of this ps and returns true; or, if one of them is not
  // empty, changes nothing and returns false. Without it views are never dropped.
  void leave_views_with(std::function<bool()> leave) { leave_views_ = std::move(leave); }
  // Returns whether it holds a copy for another ps. The end of the run reaches it only when that ps
  // ends.
  [[nodiscard]] bool is_backup() const noexcept {
    return replica_role_ == net::ReplicaRole::kBackup;
  }
  // Returns whether no task has asked this ps to host the range of the preceding ps.
  [[nodiscard]] bool is_unused() const noexcept {
    return replica_ == 1 && replica_role_ == net::ReplicaRole::kOnly;
  }

  // --- queries

  // Returns whether the last gradient of a step is about to arrive: all others are here, or there
  // are none.
  [[nodiscard]] bool expects_gradient() const noexcept {
    return is_training() && state_.shard()->policy().lacks() == 1;
  }
  // Sync: returns whether a step has been made and its answers wait for the other host's
  // acknowledgement. (Async: only one trainer waits, the others compute.)
  [[nodiscard]] bool expects_ack() const noexcept {
    return is_training() && state_.shard()->config().sync_replicas && backup_.is_complete() &&
           backup_.lag() > 0;
  }
  [[nodiscard]] std::uint8_t replica() const noexcept { return replica_; }
  [[nodiscard]] std::uint8_t other_replica() const noexcept { return replica_ == 0 ? 1 : 0; }
  [[nodiscard]] net::TaskId other_host() const {
    return host_of_range(task_.cluster, state_.index(), other_replica());
  }
  [[nodiscard]] const Membership& trainers() const noexcept { return trainers_; }
  // The replication state of the other host, if this one is the primary.
  [[nodiscard]] const BackupSender& backup() const noexcept { return backup_; }
  // The run of this range. (Snapshot shards are requested there.)
  [[nodiscard]] RangeState& state() noexcept { return state_; }
  [[nodiscard]] const RangeState& state() const noexcept { return state_; }

  // After ConnectToBackup: whether connecting to the other host is still wanted, and whether it may
  // be filled now.
  [[nodiscard]] bool connects_to_backup() const noexcept {
    return replica_role_ == net::ReplicaRole::kPrimary && !has_ended();
  }
  [[nodiscard]] bool may_fill() const noexcept {
    return replica_role_ == net::ReplicaRole::kPrimary && is_training() && !backup_.needs_acks();
  }
  // Returns the shard's counters, the trainers present, and the measured steps since the last call.
  // The fields about the process stay empty.
  [[nodiscard]] PsMetrics take_metrics();
  [[nodiscard]] std::uint64_t step() const noexcept {  // of the state; 0: there is none
    return state_.shard() ? state_.shard()->step() : 0;
  }
  // Traces all steps of this window.
  void trace(const StepWindow& window) { times_.trace(window); }
  // Returns whether the last call made a measured step; clock() is then to be called with the time
  // of its end.
  [[nodiscard]] bool awaits_clock() const noexcept { return times_.is_awaited(); }
  void clock(Clock::time_point now) { times_.made(now); }

  // Connecting to the other host has stopped.
  void stopped_connecting_to_backup() noexcept { connecting_to_backup_ = false; }

  [[nodiscard]] Outbox& out() noexcept { return out_; }

 private:
  using Role = PeerConnection::Role;

  // Returns whether steps are made here, or the last one has been made.
  [[nodiscard]] bool is_training() const noexcept {
    return state_.is_restored() && !is_finishing();
  }
  // Returns whether requests wait for a state.
  [[nodiscard]] bool awaits_state() const noexcept {
    return !state_.is_restored() && !is_finishing();
  }
  [[nodiscard]] std::size_t rank_of(const net::Hello& hello) const {
    return task_.cluster.rank_of(hello.from);
  }
  // Registers the connection. Returns whether it makes a disconnected trainer present.
  bool attach(ConnectionId id, const net::Hello& hello);
  // Log lines.
  void log_joined(std::size_t rank, const std::string& peer);
  void log_lost(std::size_t rank);
  // The trainer has lost its step channel.
  void trainer_left(std::size_t rank);
  // Recomputes how many trainers a step needs.
  void count_needed();

  // Frames from trainers.
  BodyPlan trainer_header(PeerConnection& from, const net::BodyInPlace& in_place);
  BodyPlan bodiless(PeerConnection& from);
  BodyPlan return_beat(const PeerConnection& from);
  BodyPlan send_status(const PeerConnection& from);
  [[nodiscard]] std::string status() const;
  // Handles a request without a body; refuses it if its header is malformed.
  template <typename Request>
  BodyPlan ask(PeerConnection& from);
  BodyPlan took_push(BodyPlan plan);
  void conclude();
  void stop_steps();
  BodyPlan take_best(PeerConnection& from);
  BodyPlan answer_peer_discovery(PeerConnection& from);
  BodyPlan goodbye(PeerConnection& from);

  // Frames from the chief: a run begins, receives a state, ends.
  BodyPlan publish_header(PeerConnection& from);
  BodyPlan publish_came(PeerConnection& from);
  BodyPlan refuse_chief(PeerConnection& from, ExitCode code, const std::string& why);
  // Throws std::invalid_argument if the chief is to be refused; nothing has changed then.
  [[nodiscard]] RunConfig config_to_begin(const std::string& json);
  // Throws std::bad_alloc. `chief`: the connection that stays open.
  void begin_run(const RunConfig& config, std::string json, ConnectionId chief);
  BodyPlan restore_header(PeerConnection& from);
  BodyPlan restore_came(PeerConnection& from);
  // Before a restore: closes connections whose last reply borrows memory that the restore
  // overwrites.
  void close_overtaken();
  BodyPlan shutdown(PeerConnection& from);
  // Ends this range's part of the run, as `chief` or the other host requested.
  void end(ConnectionId chief);

  // Replicas: the replica role of this host.
  BodyPlan view_header(PeerConnection& from);
  void take_view(const net::View& view);
  void become_primary(bool is_next);
  void become_backup();
  void forget_state();
  [[nodiscard]] net::Report report() const;
  [[nodiscard]] Clock::duration patience() const;
  void send_report();
  // The primary's side.
  BodyPlan backup_header(PeerConnection& from);
  void lose_backup();
  // The backup's side.
  BodyPlan primary_header(PeerConnection& from, const net::BodyInPlace& in_place);
  BodyPlan config_came(PeerConnection& from);
  BodyPlan received(PeerConnection& from, const BackupReceiver::Outcome& outcome);
  BodyPlan refuse_primary(PeerConnection& from, const std::string& why);
  [[nodiscard]] bool is_complete_copy() const noexcept { return copy_ && copy_->is_complete(); }

  // Registers a trainer's step channel.
  void join(const PeerConnection& trainer);
  BodyPlan candidate_header(PeerConnection& from);

  // Frames from evaluators.
  void take_evaluator(ConnectionId id, std::uint64_t incarnation);
  BodyPlan evaluator_header(PeerConnection& from);
  // Answers the evaluators whose step has been reached.
  void serve_evaluators();
  void heartbeat_evaluators();
  void close_evaluators();

  const Task& task_;
  ProcessOrder& order_;
  const std::uint8_t replica_;
  Outbox out_;
  Clock::time_point now_;  // the time of the current call
  ConnectionMap<PeerConnection> connections_;
  Membership trainers_;
  RangeState state_;
  RunEnd end_;
  BackupSender backup_{state_, out_};
  TrainerAnswers answers_{state_, trainers_, end_, backup_, out_};
  StepTimes times_;
  PushReceiver pushes_{task_, state_, answers_, times_, out_};
  std::optional<net::Refusal> verdict_;  // the run has failed: the refusal that peers receive

  // Evaluators, and services that follow the run, oldest first.
  struct Evaluator {
    ConnectionId id = 0;
    std::uint64_t incarnation = 0;    // of the process
    std::optional<net::Watch> watch;  // the outstanding request
  };
  std::vector<Evaluator> evaluators_;

  // Replicas. Without them the role stays kOnly, and the rest as initialized.
  net::ReplicaRole replica_role_ = net::ReplicaRole::kOnly;
  net::View view_;                 // the newest that the chief has sent
  ConnectionId view_channel_ = 0;  // the chief's
  // Since when a connected chief has had no view channel.
  Clock::time_point views_lost_{};
  bool connecting_to_backup_ = false;  // primary: ConnectToBackup is under way
  ConnectionId primary_ = 0;           // backup: the other host
  TakeRest take_rest_;
  std::function<bool()> leave_views_;
  // Backup: the copy that the newest primary has filled; kept when that primary is gone.
  std::shared_ptr<BackupReceiver> copy_;
};

}  // namespace disttf::roles
