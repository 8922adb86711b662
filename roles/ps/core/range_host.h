// One host of a range of the parameter vector: the run and its state, the trainers, the host's
// replica role, and the end of the run; and what can be derived from these. The handlers of frames
// (push_receiver.h, trainer_requests.h, run_start.h, replica_roles.h) change it; none of them holds
// a reference to another one. Its parts:
//   range_state.h      the run of this range, and the state that it holds
//   membership.h       the trainers
//   run_end.h          who may leave when
//   trainer_answers.h  when a waiting trainer is answered, and with what
//   backup_sender.h    replicas: fills the other host, and sends it each update
//   evaluators.h       requests of evaluators
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "net/wire/frame.h"
#include "net/wire/replication.h"
#include "roles/ps/core/backup_receiver.h"
#include "roles/ps/core/backup_sender.h"
#include "roles/ps/core/evaluators.h"
#include "roles/ps/core/membership.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/process_order.h"
#include "roles/ps/core/range_state.h"
#include "roles/ps/core/run_end.h"
#include "roles/ps/core/step_times.h"
#include "roles/ps/core/trainer_answers.h"
#include "run/task.h"

namespace disttf::roles {

struct RangeHost {
  // As RangeReplica's.
  RangeHost(const Task& its_task, std::uint8_t number, std::size_t threads,
            RangeState::MakeArena make_arena, ProcessOrder& its_order, Clock::time_point when);
  // Not copyable: its members hold references to one another.
  RangeHost(const RangeHost&) = delete;
  RangeHost& operator=(const RangeHost&) = delete;
  ~RangeHost() = default;

  // --- the run

  // Returns whether steps are made here, or the last one has been made.
  [[nodiscard]] bool is_training() const noexcept { return state.is_restored() && !is_finishing(); }
  // Returns whether requests wait for a state.
  [[nodiscard]] bool awaits_state() const noexcept {
    return !state.is_restored() && !is_finishing();
  }
  // Returns whether the chief has ended the run; whether this range's part of it has ended.
  [[nodiscard]] bool is_finishing() const noexcept { return end.is_over(); }
  [[nodiscard]] bool has_ended() const noexcept { return end.has_ended(); }
  // Returns whether a chief is connected and leads a run without replicas here.
  [[nodiscard]] bool is_led() const {
    return is_training() && trains_without_replicas() && trainers[0].alive();
  }
  // Returns whether the shard holds a whole state, restored or copied. (False once the run has
  // failed here.)
  [[nodiscard]] bool holds_state() const noexcept {
    return !verdict && (is_backup() ? copy && copy->is_filled() : state.is_restored());
  }
  // Returns whether that state is of this generation or a newer one, or the run is over.
  [[nodiscard]] bool is_as_new_as(net::Generation generation) const noexcept {
    return is_finishing() || (holds_state() && state.generation() >= generation);
  }
  // Returns whether it holds nothing of a run, not even part of a copy.
  [[nodiscard]] bool is_empty() const noexcept { return awaits_state() && !copy; }
  [[nodiscard]] std::uint64_t step() const noexcept {  // of the state; 0: there is none
    return state.shard() ? state.shard()->step() : 0;
  }
  // Returns whether the last gradient of a step is about to arrive: all others are here, or there
  // are none.
  [[nodiscard]] bool expects_gradient() const noexcept {
    return is_training() && state.shard()->policy().lacks() == 1;
  }
  // Sync: returns whether a step has been made and its answers wait for the other host's
  // acknowledgement. (Async: only one trainer waits, the others compute.)
  [[nodiscard]] bool expects_ack() const noexcept {
    return is_training() && state.shard()->config().sync_replicas && backup.is_complete() &&
           backup.lag() > 0;
  }

  // --- replicas

  // Returns whether it is in a run without replicas. (A published configuration does not suffice:
  // another ps may refuse the chief that published it.)
  [[nodiscard]] bool trains_without_replicas() const noexcept {
    return role == net::ReplicaRole::kOnly && !awaits_state();
  }
  // Returns whether it holds a copy for another ps. The end of the run reaches it only when that ps
  // ends.
  [[nodiscard]] bool is_backup() const noexcept { return role == net::ReplicaRole::kBackup; }
  // Returns whether no task has asked this ps to host the range of the preceding ps.
  [[nodiscard]] bool is_unused() const noexcept {
    return replica == 1 && role == net::ReplicaRole::kOnly;
  }
  [[nodiscard]] std::uint8_t other_replica() const noexcept { return replica == 0 ? 1 : 0; }
  [[nodiscard]] net::TaskId other_host() const {
    return host_of_range(task.cluster, state.index(), other_replica());
  }
  [[nodiscard]] bool is_complete_copy() const noexcept { return copy && copy->is_complete(); }
  // After ConnectToBackup: whether connecting to the other host is still wanted, and whether it may
  // be filled now.
  [[nodiscard]] bool connects_to_backup() const noexcept {
    return role == net::ReplicaRole::kPrimary && !has_ended();
  }
  [[nodiscard]] bool may_fill() const noexcept {
    return role == net::ReplicaRole::kPrimary && is_training() && !backup.needs_acks();
  }

  // --- changes

  // A frame has arrived on a trainer's step channel.
  void received(const PeerConnection& from);
  // Recomputes how many trainers a step needs.
  void count_needed();
  // Answers the evaluators whose step has been reached.
  void serve_evaluators();
  // Begins a run. Throws std::bad_alloc. `chief`: the connection that stays open.
  void begin_run(const RunConfig& config, std::string json, ConnectionId chief);
  // The chief fetches the result: no more steps are made.
  void conclude();
  void stop_steps();
  // Answers the trainers that wait for the end of the run, and ends this range's part when it is
  // due.
  void check_end();
  // Ends this range's part of the run, as `chief` or the other host requested.
  void finish(ConnectionId chief);
  void forget_state();
  void lose_backup();
  // Reports to the chief, if it has a view channel here.
  void send_report();

  const Task& task;
  ProcessOrder& order;
  const std::uint8_t replica;  // 0: the range is this ps's own; 1: that of the preceding ps
  Outbox out;
  Clock::time_point now;  // the time of the current call
  Membership trainers;
  RangeState state;
  RunEnd end;
  BackupSender backup{state, out};  // the replication state of the other host, of a primary
  TrainerAnswers answers{state, trainers, end, backup, out};
  StepTimes times;
  Evaluators evaluators{out};
  std::optional<net::Refusal> verdict;  // the run has failed: the refusal that peers receive

  // Replicas. Without them the role stays kOnly, and the rest as initialized.
  net::ReplicaRole role = net::ReplicaRole::kOnly;
  net::View view;                 // the newest that the chief has sent
  ConnectionId view_channel = 0;  // the chief's
  // Since when a connected chief has had no view channel.
  Clock::time_point views_lost{};
  ConnectionId primary = 0;  // backup: the other host
  // Backup: the copy that the newest primary has filled; kept when that primary is gone.
  std::shared_ptr<BackupReceiver> copy;

 private:
  [[nodiscard]] net::Report report() const;
  [[nodiscard]] Clock::duration patience() const;
};

}  // namespace disttf::roles
