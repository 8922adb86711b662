#include <algorithm>
#include <string>
#include <utility>

#include "roles/ps/core/range_replica.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

}  // namespace

// The chief assigns the replica role of this host here, and receives reports.
BodyPlan RangeReplica::view_header(PeerConnection& from) {
  const FrameHeader& header = from.header;
  if (net::is_bodiless<net::Heartbeat>(header)) {
    // Reading a frame has restarted the heartbeat timeout of the channel.
    return {};
  }
  if (net::is_bodiless<net::Shutdown>(header)) {
    end(from.id);
    return {};
  }
  if (net::ViewFrame{}.from_header(header) || header.body_size != net::kViewBytes) {
    return from.refuse(out_, kError, "a view channel carries views only");
  }
  return from.into_bytes(PeerConnection::Part::kView, net::kViewBytes);
}

void RangeReplica::take_view(const net::View& view) {
  // Even a stale view proves that its chief's process existed.
  order_.learn(0, view.number.chief);
  // Views are totally ordered, by chief and then by count, so an older one is never obeyed again.
  if (view.number > view_.number && !has_ended()) {
    const bool is_next = view.number.count == view_.number.count + 1;
    view_ = view;
    if (view.primary == replica_) {
      become_primary(is_next);
    } else {
      become_backup();
    }
  }
  // Sent even if the view was stale: the report shows its chief the newer one.
  send_report();
}

// `is_next`: this view directly follows the last one that this host received. Otherwise the copy
// may belong to an older view: a primary that had been replaced while it was disconnected may have
// reached this process before the chief did.
void RangeReplica::become_primary(bool is_next) {
  if (replica_role_ != net::ReplicaRole::kPrimary) {
    // Updates that the primary has left in memory were acknowledged, so they are read before its
    // connection is closed.
    if (primary_ != 0 && take_rest_) {
      take_rest_(primary_);
    }
    const bool goes_on = is_backup() && is_complete_copy() && is_next;
    replica_role_ = net::ReplicaRole::kPrimary;
    // From here on no update of the old primary is accepted.
    out_.close(std::exchange(primary_, 0));
    copy_.reset();
    // If the view is paired and only this host is left, the chief must permit it to go on alone.
    backup_.begin(view_.paired);
    if (goes_on) {
      state_.serve_copy();
      end_.begin_steps(/*expects_all=*/!state_.shard()->config().elastic());
      if (state_.shard()->is_concluded()) {
        stop_steps();
      }
      out_.info("serves range " + std::to_string(state_.index()) + " from now on, at step " +
                std::to_string(state_.shard()->step()) + ", view " +
                std::to_string(view_.number.count));
    } else {
      forget_state();
    }
    count_needed();
    // One coroutine connects to the backup for as long as this host is the primary.
    if (!std::exchange(connecting_to_backup_, true)) {
      out_.add(ConnectToBackup{});
    }
  } else if (view_.paired) {
    backup_.pair();
  } else if (backup_.connection() == 0) {  // else the next chief has only repeated the current view
    backup_.go_alone();
  }
  // The view may permit answers that waited for the backup or for the chief.
  answers_.answer_waiting(now_);
}

void RangeReplica::become_backup() {
  if (replica_role_ == net::ReplicaRole::kPrimary) {
    out_.warn("no longer serves range " + std::to_string(state_.index()) + ": the chief chose " +
              describe(task_.cluster, other_host()));
    // First: waiting trainers must not be answered with what the other host may lack.
    forget_state();
    backup_.go_alone();
    lose_backup();
  }
  trainers_.close_steps(out_);  // they then connect to the other host
  close_evaluators();
  replica_role_ = net::ReplicaRole::kBackup;
  count_needed();
  if (!view_.paired && is_complete_copy()) {  // the primary has gone on without this copy
    copy_.reset();
    out_.close(std::exchange(primary_, 0));
  }
}

void RangeReplica::leave_views(Clock::time_point now) {
  now_ = now;
  if (replica_role_ == net::ReplicaRole::kOnly) {
    return;
  }
  out_.info("range " + std::to_string(state_.index()) +
            ": forgets the views of a chief whose run has not begun here");
  backup_.go_alone();
  lose_backup();
  out_.close(std::exchange(view_channel_, 0));
  out_.close(std::exchange(primary_, 0));
  replica_role_ = net::ReplicaRole::kOnly;
  view_ = {};
  // A run without replicas uses range 0 only.
  if (replica_ == 1) {
    forget_state();  // the memory that the configuration took
  }
  count_needed();
}

void RangeReplica::forget_state() {
  if (!state_.shard()) {
    return;
  }
  trainers_.close_steps(out_);  // a reply may still borrow the shard's memory
  state_.forget();
  end_.forget();
  count_needed();
}

bool RangeReplica::lacks(const net::Hello& hello) const {
  if (replica_role_ != net::ReplicaRole::kPrimary || !state_.is_restored() || is_finishing() ||
      hello.purpose != net::ChannelPurpose::kStep || hello.last.generation != state_.generation() ||
      state_.shard()->finished()) {  // no update follows the last step, and this host has that
    return false;
  }
  // Async: parameters may include other trainers' pushes that were not acknowledged and will be
  // repeated.
  return state_.shard()->config().sync_replicas
             ? hello.last.step > state_.shard()->step()
             : hello.last.push != 0 && !state_.shard()->policy().has_applied(
                                           rank_of(hello), hello.incarnation, hello.last.push);
}

void RangeReplica::lose_state(Clock::time_point now) {
  now_ = now;
  out_.warn(
      "range " + std::to_string(state_.index()) + ": the copy of step " +
      std::to_string(state_.shard()->step()) +
      " lacks updates that a trainer has seen: the primary before this one had gone on alone, and "
      "the state is lost with it");
  forget_state();  // first: waiting trainers must not be answered
  lose_backup();
  send_report();
}

// How long a trainer is disconnected from this primary before the report lists it as unreachable:
// no longer than it takes to notice a lost connection, and well before any task gives up.
Clock::duration RangeReplica::patience() const {
  const Timeouts& timeouts = task_.timeouts;
  return std::min<Clock::duration>(timeouts.heartbeat_timeout,
                                   std::min<Clock::duration>(timeouts.worker, timeouts.peer) / 2);
}

net::Report RangeReplica::report() const {
  const bool is_primary = replica_role_ == net::ReplicaRole::kPrimary;
  return {.view = view_.number,
          .replica_role = replica_role_,
          .holds = is_primary ? !awaits_state() : is_complete_copy(),
          .wants_alone = is_primary && backup_.needs_acks() && backup_.connection() == 0,
          .wants_pair = is_primary && backup_.is_complete() && !view_.paired,
          // A run that has failed here goes on at the other host.
          .finished = has_ended() && !verdict_,
          .paired = view_.paired,
          .trainers = is_primary ? trainers_.unreachable_trainers(now_, patience())
                                 : trainers_.redirected_clients(now_)};
}

void RangeReplica::send_report() {
  if (view_channel_ != 0) {
    out_.send(view_channel_, net::ReportFrame{}.to_header(), net::encode(report()));
  }
}

// Runs for as long as the other host is connected.
void RangeReplica::reached(ConnectionId id, Clock::time_point now) {
  now_ = now;
  connections_.emplace(id, id, PeerConnection::Role::kBackup, describe(task_.cluster, other_host()),
                       net::Hello{});
  backup_.fill(id, view_.number);
}

BodyPlan RangeReplica::backup_header(PeerConnection& from) {
  const BackupSender::Heard heard =
      // Frames of a backup that has been dropped meanwhile are not trusted.
      backup_.connection() == from.id ? backup_.heard(from.header) : BackupSender::Heard::kNonsense;
  switch (heard) {
    case BackupSender::Heard::kNonsense:
      return {.next = BodyPlan::Next::kStop};
    case BackupSender::Heard::kNothing:
      return {};
    case BackupSender::Heard::kCompleted:
      out_.info(from.peer + " holds a copy of range " + std::to_string(state_.index()));
      send_report();
      break;
    case BackupSender::Heard::kAck:
      break;
  }
  // An acknowledgement may make answers safe that wait for it.
  answers_.answer_waiting(now_);
  return {};
}

void RangeReplica::gave(ConnectionId to, ReplicationLog::Index entry, Clock::time_point now) {
  now_ = now;
  backup_.gave(to, entry);
  answers_.answer_waiting(now_);
}

void RangeReplica::lose_backup() {
  if (backup_.lose()) {
    send_report();
    answers_.answer_waiting(now_);
  }
}

void RangeReplica::end(ConnectionId chief) {
  if (has_ended()) {
    return;
  }
  end_.end();
  DrainConnections last;
  if (chief != 0) {
    last.ids.push_back(chief);
  }
  if (replica_role_ == net::ReplicaRole::kPrimary && state_.shard()) {
    out_.info("range " + std::to_string(state_.index()) + ": " +
              std::to_string(state_.shard()->counters().applied) +
              " gradients applied, generation " +
              std::to_string(net::number_of(state_.generation())));
  }
  for (const Evaluator& each : evaluators_) {
    last.ids.push_back(each.id);
  }
  if (const ConnectionId backup = backup_.end(); backup != 0) {
    last.ids.push_back(backup);
  }
  // The report says that this range has ended, so the chief does not count the closing host as
  // lost.
  if (view_channel_ != 0) {
    send_report();
    last.ids.push_back(view_channel_);
  }
  out_.add(std::move(last));
}

}  // namespace disttf::roles
