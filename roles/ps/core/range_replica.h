// One host's replica of a range of the parameter vector, and what trainers, the chief and the other
// host may say to it: who of them is there, and what they are answered. What happens to gradients
// is roles/ps/core/shard.h; who the trainers are is membership.h.
//   range_replica.cc           its life: connections come and go, time passes
//   range_replica_run.cc       the chief begins a run: its configuration, its state
//   range_replica_requests.cc  what a trainer may ask for, one handler a frame kind
//   range_replica_end.cc       what is said of the end of a run; who may leave when is run_end.h
//   range_replica_views.cc     replicas: what this host is to the range, as the chief tells it
//   range_replica_backup.cc    replicas: is filled by the other host, and told
//   range_replica_evaluator.cc what evaluators may ask for, whom nobody waits for
// and in parts of its own
//   range_state.h      the run that it is in, and the state that it holds
//   push_receiver.h    gradients come
//   trainer_answers.h  when a trainer that waits is answered, and with what
//   backup_sender.h    replicas: fills the other host, and tells it each update
//   backup_receiver.h  replicas: what it reads of that
//
// A state machine. It is told what has happened, and at what time; what it wants done it puts into
// the outbox, which whoever calls it empties after each call (but for queries). No
// byte of a tensor passes through it: it says where the body of a frame goes, and is told that it
// has come.
//
// Not thread-safe: the ps's one thread owns it.
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

#include "net/wire/cut_messages.h"
#include "net/wire/generation.h"
#include "net/wire/replication.h"
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
  // `task` must outlive it. `replica`: 0, the range is this ps's own; 1, it is that of the ps
  // before it. `make_arena` and `threads`: as RangeState's. `order`: of the ps; it must outlive
  // this. Who is replaced by it does not get here; what this range hears of trainers it is told.
  RangeReplica(const Task& task, std::uint8_t replica, std::size_t threads,
               RangeState::MakeArena make_arena, ProcessOrder& order, Clock::time_point now);
  RangeReplica(const RangeReplica&) = delete;  // its parts know each other
  RangeReplica& operator=(const RangeReplica&) = delete;
  ~RangeReplica() = default;

  // --- connections

  // The answer to a HELLO that fits the cluster.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  // This host is the primary, and its copy lacks what the trainer that says HELLO was answered
  // with: the primary before it had gone on alone, and was lost with the chief that had let it, so
  // that the next chief has taken this copy for one that has everything.
  [[nodiscard]] bool lacks(const net::Hello& hello) const;
  // That copy is no state: the chief is to set all ps to one, in a new generation.
  void lose_state(Clock::time_point now);
  // It has been welcomed: a step, a view, or a replica channel. `peer`: how messages call it.
  // False: it is not to be read from.
  bool connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                 Clock::time_point now);
  // The other host was reached, over a replica channel, after may_fill().
  void reached(ConnectionId id, Clock::time_point now);
  // A frame's header has come. `in_place`: where its body lies, if it need not be read: it is then
  // read there until the frame is answered, unless the plan says where to copy it.
  BodyPlan header(ConnectionId id, const net::FrameHeader& header, Clock::time_point now,
                  const net::BodyInPlace& in_place = {});
  // What the plan said has been read.
  BodyPlan body(ConnectionId id, Clock::time_point now);
  // The run that body() would begin here, where there is no shard yet: the shell may make its shard
  // beside the loop (RangeState::prepared()), as a large one takes seconds.
  struct Beginning {
    std::string json;
    RunConfig config;
  };
  [[nodiscard]] std::optional<Beginning> run_to_begin(ConnectionId id);
  // The update of this entry, that this host was to tell the other one, lies where that one takes
  // it also when this process is gone.
  void gave(ConnectionId to, ReplicationLog::Index entry, Clock::time_point now);
  // The connection is no more. What it was sending did not come whole. Where it was the primary's,
  // REQUIRES: header() has had all that this has left in memory.
  void closed(ConnectionId id, Clock::time_point now);
  // By `take_rest` the same is seen to for a connection that this host closes itself, as it takes
  // the primary's place: from then on the primary gives nothing any more. Without one nothing is
  // given. (It calls header() from within another call.)
  using TakeRest = std::function<void(ConnectionId)>;
  void take_rest_with(TakeRest take_rest) { take_rest_ = std::move(take_rest); }
  // It is the primary's from which this host has its copy.
  [[nodiscard]] bool follows(ConnectionId id) const noexcept { return id != 0 && id == primary_; }

  // A control channel has come, beats with a trainer's generation, and has gone. hear(): why this
  // process is to leave the run, if it was replaced in it while it was silent.
  void attach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now);
  [[nodiscard]] std::optional<std::string> hear(const net::Hello& hello, net::Generation generation,
                                                Clock::time_point now);
  void detach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now);

  // --- time

  // `missed`: of the time until now, what this process did not see.
  void forgive(Clock::duration missed, Clock::time_point now);
  // Closes connections that have been silent for too long; and those of all trainers where this
  // host seems to have been replaced while it was silent.
  void close_silent(Clock::time_point now);
  void send_heartbeats(Clock::time_point now);
  // Answers who waits for the end of the run, and ends this range's part of it when it is time to.
  void check_end(Clock::time_point now);
  // Whose absence ends the run, if anybody's: the sentence.
  [[nodiscard]] std::optional<std::string> overdue(Clock::time_point now) const;

  // --- the end

  // REQUIRES: the run is over. Nobody is waited for: a signal has come, or the chief has not.
  void end_now(Clock::time_point now);
  // The run has failed: whoever is connected is told.
  void refuse_all(const net::Refusal& verdict);
  // The chief has said that the run is over.
  [[nodiscard]] bool is_finishing() const noexcept { return end_.is_over(); }
  [[nodiscard]] bool has_ended() const noexcept { return end_.has_ended(); }
  [[nodiscard]] net::Standing standing() const noexcept { return standing_; }
  // The newest that the chief has told.
  [[nodiscard]] const net::View& view() const noexcept { return view_; }
  // The shard's numbers are a state: restored, or copied, whole. (Not once the run has failed
  // here.)
  [[nodiscard]] bool holds_state() const noexcept {
    return !verdict_ && (is_backup() ? copy_ && copy_->is_filled() : state_.is_restored());
  }
  // That, of this generation or a newer one; or it knows that the run is over.
  [[nodiscard]] bool is_as_new_as(net::Generation generation) const noexcept {
    return is_finishing() || (holds_state() && state_.generation() >= generation);
  }
  // It is in a run that has no replicas. (Not one that was only published to: another ps may refuse
  // the chief that did.)
  [[nodiscard]] bool trains_without_replicas() const noexcept {
    return standing_ == net::Standing::kOnly && !awaits_state();
  }
  // It holds nothing of a run, not even a part of a copy that is on its way.
  [[nodiscard]] bool is_empty() const noexcept { return awaits_state() && !copy_; }
  // Forgets the views of a chief whose run did not begin here, for a chief whose run has no
  // replicas. REQUIRES: is_empty().
  void leave_views(Clock::time_point now);
  // `leave` does that at all ranges of this ps, and returns true; or false, and nothing has
  // changed, where one of them is not empty. Without it views are never left.
  void leave_views_with(std::function<bool()> leave) { leave_views_ = std::move(leave); }
  // Holds a copy for another ps. It is not told of the end before that ps ends.
  [[nodiscard]] bool is_backup() const noexcept { return standing_ == net::Standing::kBackup; }
  // Nobody has asked this ps to host the range of the one before it.
  [[nodiscard]] bool is_unused() const noexcept {
    return replica_ == 1 && standing_ == net::Standing::kOnly;
  }

  // --- queries

  // The last gradient of a step is about to come: the others are here, or there are none.
  [[nodiscard]] bool expects_gradient() const noexcept {
    return is_training() && state_.shard()->lacks() == 1;
  }
  // Sync: a step has been made, and what is answered waits for the other host to have it. (Async:
  // one trainer waits, and the others compute.)
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
  // What the other host has, where this one is the primary.
  [[nodiscard]] const BackupSender& backup() const noexcept { return backup_; }
  // The run that it is in. (Cuts are asked for there.)
  [[nodiscard]] RangeState& state() noexcept { return state_; }
  [[nodiscard]] const RangeState& state() const noexcept { return state_; }

  // After ReachOut: whether the other host is still to be reached, and may be filled now.
  [[nodiscard]] bool reaches_out() const noexcept {
    return standing_ == net::Standing::kPrimary && !has_ended();
  }
  [[nodiscard]] bool may_fill() const noexcept {
    return standing_ == net::Standing::kPrimary && is_training() && !backup_.needs_acks();
  }
  // How the range does: what its shard has counted, who is here, and the steps that were measured
  // since the last call. Of the process nothing is filled in.
  [[nodiscard]] PsMetrics take_metrics();
  [[nodiscard]] std::uint64_t step() const noexcept {  // of the state; 0: there is none
    return state_.shard() ? state_.shard()->step() : 0;
  }
  // All of these steps are to be told.
  void trace(const StepWindow& window) { times_.trace(window); }
  // The call that has just ended made a step that is measured: it is to be told when it was done.
  [[nodiscard]] bool awaits_clock() const noexcept { return times_.is_awaited(); }
  void clock(Clock::time_point now) { times_.made(now); }

  // It is no longer tried.
  void stopped_reaching() noexcept { reaching_ = false; }

  [[nodiscard]] Outbox& out() noexcept { return out_; }

 private:
  using Role = PeerConnection::Role;

  // Steps are made here, or the last one has been.
  [[nodiscard]] bool is_training() const noexcept {
    return state_.is_restored() && !is_finishing();
  }
  // Requests wait for a state.
  [[nodiscard]] bool awaits_state() const noexcept {
    return !state_.is_restored() && !is_finishing();
  }
  [[nodiscard]] std::size_t rank_of(const net::Hello& hello) const {
    return task_.cluster.rank_of(hello.from);
  }
  // Says whether it is present from now on, and was not.
  bool attach(ConnectionId id, const net::Hello& hello);
  // In the log.
  void say_joined(std::size_t rank, const std::string& peer);
  void say_lost(std::size_t rank);
  // It cannot be sent parameters any more.
  void trainer_left(std::size_t rank);
  // How many trainers a step cannot be made without, after that may have changed.
  void count_needed();

  // Frames of trainers.
  BodyPlan trainer_header(PeerConnection& from, const net::BodyInPlace& in_place);
  BodyPlan bodiless(PeerConnection& from);
  BodyPlan return_beat(const PeerConnection& from);
  BodyPlan send_status(const PeerConnection& from);
  [[nodiscard]] std::string status() const;
  // A request without a body; refused where its header does not say it.
  template <typename Request>
  BodyPlan ask(PeerConnection& from);
  BodyPlan took_push(BodyPlan plan);
  void conclude();
  void stop_steps();
  BodyPlan take_best(PeerConnection& from);
  BodyPlan meet(PeerConnection& from);
  BodyPlan goodbye(PeerConnection& from);

  // The chief's: a run begins, has a state, is over.
  BodyPlan publish_header(PeerConnection& from);
  BodyPlan publish_came(PeerConnection& from);
  BodyPlan refuse_chief(PeerConnection& from, ExitCode code, const std::string& why);
  // Throws std::invalid_argument where the chief is refused; then nothing has changed.
  [[nodiscard]] RunConfig config_to_begin(const std::string& json);
  // Throws std::bad_alloc. `chief`: the connection that is not closed.
  void begin_run(const RunConfig& config, std::string json, ConnectionId chief);
  BodyPlan restore_header(PeerConnection& from);
  BodyPlan restore_came(PeerConnection& from);
  // Before a restore: connections whose last reply borrows what it goes into.
  void close_overtaken();
  BodyPlan shutdown(PeerConnection& from);
  // The run is over for the range, as it was told to `chief`, or by the other host.
  void end(ConnectionId chief);

  // Replicas: what this host is to the range.
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

  // Evaluators'.
  void take_evaluator(ConnectionId id, std::uint64_t incarnation);
  BodyPlan evaluator_header(PeerConnection& from);
  // Answers those for whom what they wait for is here.
  void serve_evaluators();
  void heartbeat_evaluators();
  void close_evaluators();

  const Task& task_;
  ProcessOrder& order_;
  const std::uint8_t replica_;
  Outbox out_;
  Clock::time_point now_;  // of the call under way
  ConnectionMap<PeerConnection> connections_;
  Membership trainers_;
  RangeState state_;
  RunEnd end_;
  BackupSender backup_{state_, out_};
  TrainerAnswers answers_{state_, trainers_, end_, backup_, out_};
  StepTimes times_;
  PushReceiver pushes_{task_, state_, answers_, times_, out_};
  std::optional<net::Refusal> verdict_;  // the run has failed: what peers are told

  // Those who watch the run: evaluators, and services that follow it. The oldest first.
  struct Evaluator {
    ConnectionId id = 0;
    std::uint64_t incarnation = 0;    // of the process
    std::optional<net::Watch> watch;  // what it waits for
  };
  std::vector<Evaluator> evaluators_;

  // Replicas. Without them the standing stays kOnly, and all of this as it is.
  net::Standing standing_ = net::Standing::kOnly;
  net::View view_;                 // the newest that the chief has told
  ConnectionId view_channel_ = 0;  // the chief's
  // Of a chief that is here: since when it has had no view channel.
  Clock::time_point views_lost_{};
  bool reaching_ = false;     // primary: ReachOut is under way
  ConnectionId primary_ = 0;  // backup: the other host
  TakeRest take_rest_;
  std::function<bool()> leave_views_;
  // Backup: what the newest primary has copied here; also when that is gone.
  std::shared_ptr<BackupReceiver> copy_;
};

}  // namespace disttf::roles
