#include "roles/ps/core/replica_roles.h"

#include <stdexcept>
#include <variant>

#include "net/wire/replication.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

// The chief assigns the replica role of this host here, and receives reports.
BodyPlan ReplicaRoles::view_header(PeerConnection& from) {
  const FrameHeader& header = from.header;
  if (net::is_bodiless<net::Heartbeat>(header)) {
    // Reading a frame has restarted the heartbeat timeout of the channel.
    return {};
  }
  if (net::is_bodiless<net::Shutdown>(header)) {
    host_.finish(from.id);
    return {};
  }
  if (net::ViewFrame{}.from_header(header) || header.body_size != net::kBodyBytes<net::View>) {
    return from.refuse(host_.out, kError, "a view channel carries views only");
  }
  return from.into_bytes(PeerConnection::Part::kView, net::kBodyBytes<net::View>);
}

BodyPlan ReplicaRoles::view_came(PeerConnection& from) {
  net::View view;
  if (net::decode(from.bytes, view)) {
    return from.refuse(host_.out, kError, "malformed VIEW frame");
  }
  take_view(view);
  return {};
}

void ReplicaRoles::take_view(const net::View& view) {
  // Even a stale view proves that its chief's process existed.
  host_.order.learn(0, view.number.chief);
  // Views are totally ordered, by chief and then by count, so an older one is never obeyed again.
  if (view.number > host_.view.number && !host_.has_ended()) {
    const bool is_next = view.number.count == host_.view.number.count + 1;
    host_.view = view;
    if (view.primary == host_.replica) {
      become_primary(is_next);
    } else {
      become_backup();
    }
  }
  // Sent even if the view was stale: the report shows its chief the newer one.
  host_.send_report();
}

// `is_next`: this view directly follows the last one that this host received. Otherwise the copy
// may belong to an older view: a primary that had been replaced while it was disconnected may have
// reached this process before the chief did.
void ReplicaRoles::become_primary(bool is_next) {
  if (host_.role != net::ReplicaRole::kPrimary) {
    // Updates that the primary has left in memory were acknowledged, so they are read before its
    // connection is closed.
    if (host_.primary != 0 && take_rest_) {
      take_rest_(host_.primary);
    }
    const bool goes_on = host_.is_backup() && host_.is_complete_copy() && is_next;
    host_.role = net::ReplicaRole::kPrimary;
    // From here on no update of the old primary is accepted.
    host_.out.close(std::exchange(host_.primary, 0));
    host_.copy.reset();
    // If the view is paired and only this host is left, the chief must permit it to go on alone.
    host_.backup.begin(host_.view.paired);
    if (goes_on) {
      host_.state.serve_copy();
      host_.end.begin_steps(/*expects_all=*/!host_.state.shard()->config().elastic());
      if (host_.state.shard()->is_concluded()) {
        host_.stop_steps();
      }
      host_.out.info("serves range " + std::to_string(host_.state.index()) +
                     " from now on, at step " + std::to_string(host_.state.shard()->step()) +
                     ", view " + std::to_string(host_.view.number.count));
    } else {
      host_.forget_state();
    }
    host_.count_needed();
    // One coroutine connects to the backup for as long as this host is the primary.
    if (!std::exchange(connecting_to_backup_, true)) {
      host_.out.add(ConnectToBackup{});
    }
  } else if (host_.view.paired) {
    host_.backup.pair();
  } else if (host_.backup.connection() ==
             0) {  // else the next chief has only repeated the current view
    host_.backup.go_alone();
  }
  // The view may permit answers that waited for the backup or for the chief.
  host_.answers.answer_waiting(host_.now);
}

void ReplicaRoles::become_backup() {
  if (host_.role == net::ReplicaRole::kPrimary) {
    host_.out.warn("no longer serves range " + std::to_string(host_.state.index()) +
                   ": the chief chose " + describe(host_.task.cluster, host_.other_host()));
    // First: waiting trainers must not be answered with what the other host may lack.
    host_.forget_state();
    host_.backup.go_alone();
    host_.lose_backup();
  }
  host_.trainers.close_steps(host_.out);  // they then connect to the other host
  host_.evaluators.close();
  host_.role = net::ReplicaRole::kBackup;
  host_.count_needed();
  if (!host_.view.paired &&
      host_.is_complete_copy()) {  // the primary has gone on without this copy
    host_.copy.reset();
    host_.out.close(std::exchange(host_.primary, 0));
  }
}

void ReplicaRoles::leave_views() {
  if (host_.role == net::ReplicaRole::kOnly) {
    return;
  }
  host_.out.info("range " + std::to_string(host_.state.index()) +
                 ": forgets the views of a chief whose run has not begun here");
  host_.backup.go_alone();
  host_.lose_backup();
  host_.out.close(std::exchange(host_.view_channel, 0));
  host_.out.close(std::exchange(host_.primary, 0));
  host_.role = net::ReplicaRole::kOnly;
  host_.view = {};
  // A run without replicas uses range 0 only.
  if (host_.replica == 1) {
    host_.forget_state();  // the memory that the configuration took
  }
  host_.count_needed();
}

bool ReplicaRoles::lacks(const net::Hello& hello) const {
  if (host_.role != net::ReplicaRole::kPrimary || !host_.state.is_restored() ||
      host_.is_finishing() || hello.purpose != net::ChannelPurpose::kStep ||
      hello.last.generation != host_.state.generation() ||
      host_.state.shard()->finished()) {  // no update follows the last step, and this host has that
    return false;
  }
  // Async: parameters may include other trainers' pushes that were not acknowledged and will be
  // repeated.
  return host_.state.shard()->config().sync_replicas
             ? hello.last.step > host_.state.shard()->step()
             : hello.last.push != 0 &&
                   !host_.state.shard()->policy().has_applied(
                       host_.task.cluster.rank_of(hello.from), hello.incarnation, hello.last.push);
}

void ReplicaRoles::lose_state() {
  host_.out.warn(
      "range " + std::to_string(host_.state.index()) + ": the copy of step " +
      std::to_string(host_.state.shard()->step()) +
      " lacks updates that a trainer has seen: the primary before this one had gone on alone, and "
      "the state is lost with it");
  host_.forget_state();  // first: waiting trainers must not be answered
  host_.lose_backup();
  host_.send_report();
}

BodyPlan ReplicaRoles::backup_header(PeerConnection& from) {
  const BackupSender::Heard heard =
      // Frames of a backup that has been dropped meanwhile are not trusted.
      host_.backup.connection() == from.id ? host_.backup.heard(from.header)
                                           : BackupSender::Heard::kNonsense;
  switch (heard) {
    case BackupSender::Heard::kNonsense:
      return {.next = BodyPlan::Next::kStop};
    case BackupSender::Heard::kNothing:
      return {};
    case BackupSender::Heard::kCompleted:
      host_.out.info(from.peer + " holds a copy of range " + std::to_string(host_.state.index()));
      host_.send_report();
      break;
    case BackupSender::Heard::kAck:
      break;
  }
  // An acknowledgement may make answers safe that wait for it.
  host_.answers.answer_waiting(host_.now);
  return {};
}

BodyPlan ReplicaRoles::primary_header(PeerConnection& from, const net::BodyInPlace& in_place) {
  const FrameHeader& header = from.header;
  // PUBLISH is the first frame of a new primary, so it is accepted before this host knows its role.
  if (header.kind == FrameKind::kPublish) {
    // The size comes from the peer, so the memory for it is bounded.
    if (header.body_size > net::kMaxConfigBodyBytes) {
      return from.refuse(host_.out, kError, "a configuration has at most 16 MiB");
    }
    return from.into_growing_bytes(PeerConnection::Part::kConfig);
  }
  // From here on frames apply to the copy, which belongs to one primary.
  if (host_.primary != from.id) {
    return from.refuse(host_.out, kError, "another host is the primary of this range");
  }
  switch (header.kind) {
    case FrameKind::kFill:
      return received(from, host_.copy->fill(header, host_.state.shard()));
    case FrameKind::kUpdate:
      return received(from, host_.copy->update(header, host_.state.shard(), in_place));
    default:
      break;
  }
  if (net::is_bodiless<net::Heartbeat>(header)) {
    return {};
  }
  if (net::is_bodiless<net::Shutdown>(header)) {
    host_.finish(from.id);
    return {};
  }
  if (net::Best best; header.body_size == 0 && !best.from_header(header)) {
    host_.state.learn({.step = best.step, .loss = best.loss});
    return {};
  }
  net::Conclude conclude;
  net::Complete complete;
  // CONCLUDE and COMPLETE are acknowledged; COMPLETE also lets the chief choose this host.
  const bool is_taken =
      header.body_size == 0 &&
      (!conclude.from_header(header)
           ? host_.copy->conclude(conclude, *host_.state.shard())
           : !complete.from_header(header) && host_.copy->complete(complete.generation));
  if (!is_taken) {
    return refuse_primary(from, "not a frame that a backup accepts now");
  }
  host_.out.send(from.id, net::Ack{header.request_id}.to_header());
  host_.send_report();
  return {};
}

// The primary may have answered trainers with what this host refuses, so the copy is no longer
// complete.
BodyPlan ReplicaRoles::refuse_primary(PeerConnection& from, const std::string& why) {
  host_.copy.reset();
  host_.primary = 0;
  // Reported at once, so that the chief does not choose this host.
  host_.send_report();
  return from.refuse(host_.out, kError, why);
}

// A primary that was replaced in a newer view learns of it from the chief.
BodyPlan ReplicaRoles::config_came(PeerConnection& from) {
  net::PublishToBackup publish;
  if (const auto error = publish.from_header(from.header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  // A primary accepts a copy only by a strictly newer view; a backup also by its own.
  const bool is_newer = host_.role == net::ReplicaRole::kPrimary
                            ? publish.view > host_.view.number
                            : publish.view >= host_.view.number;
  if (host_.has_ended() || !is_newer) {
    return from.refuse(host_.out, kLostPeers, "the view is older than this host's");
  }
  std::string json = from.take_text();
  RunConfig config;
  try {
    config = host_.state.checked_config(json,
                                        /*is_replicated=*/publish.view > host_.view.number ||
                                            host_.role != net::ReplicaRole::kOnly);
  } catch (const std::invalid_argument& error) {
    return from.refuse(host_.out, kError, error.what());
  }
  // Only one primary fills a copy. The older connection may be that of a suspended process.
  if (host_.primary != from.id) {
    host_.out.close(host_.primary);
  }
  host_.primary = 0;
  host_.copy.reset();
  // The view names its chief, so an older chief that reaches this host later is refused.
  host_.order.learn(0, publish.view.chief);
  if (publish.view > host_.view.number) {
    host_.view = {.number = publish.view, .primary = host_.other_replica()};
    become_backup();
  }
  // A shard of the same run is kept: its memory is filled anew.
  try {
    if (json != host_.state.config_json() || !host_.state.shard()) {
      host_.begin_run(config, std::move(json), 0);
    }
  } catch (const std::exception& error) {  // out of memory
    return from.refuse(host_.out, kError, error.what());
  }
  // The shard's numbers are being overwritten by FILL from here on.
  host_.state.invalidate();
  // An end that was recorded here belongs to the state that is being replaced.
  host_.end.forget();
  host_.primary = from.id;
  host_.copy = std::make_shared<BackupReceiver>();
  // The connection holds the receiver too: a newer primary may replace host_.copy while a part of a
  // frame is being read into it.
  from.copy = host_.copy;
  host_.send_report();
  return {};
}

BodyPlan ReplicaRoles::part_came(PeerConnection& from) {
  // A newer primary has replaced this one while the part was being read.
  if (host_.primary != from.id) {
    return {.next = BodyPlan::Next::kStop};
  }
  return received(from, from.copy->part());
}

// The header, or a part of the body, of a frame from the primary has arrived.
BodyPlan ReplicaRoles::received(PeerConnection& from, const BackupReceiver::Outcome& outcome) {
  if (const auto* const read = std::get_if<BackupReceiver::Read>(&outcome)) {
    from.part = PeerConnection::Part::kOfPrimary;
    return {.next = BodyPlan::Next::kInto, .places = read->places};
  }
  if (const auto* const refused = std::get_if<BackupReceiver::Refused>(&outcome)) {
    return refuse_primary(from, refused->why);
  }
  if (const auto* const filled = std::get_if<BackupReceiver::Filled>(&outcome)) {
    // The copy recognizes replaced processes as the primary does, also after a failover.
    for (std::size_t rank = 0; rank < filled->incarnations.size(); ++rank) {
      host_.order.learn(rank, filled->incarnations[rank]);
    }
    host_.state.took_copy(filled->generation, filled->lineage);
    host_.out.info("holds a copy of range " + std::to_string(host_.state.index()) + " at step " +
                   std::to_string(filled->step) + ", generation " +
                   std::to_string(net::number_of(host_.state.generation())));
  } else {
    // Async: without this, this host would count a push of an older process as new and not as a
    // repeat.
    const auto& updated = std::get<BackupReceiver::Updated>(outcome);
    host_.order.learn(updated.trainer, updated.incarnation);
  }
  // For an UPDATE the acknowledgement also lets the primary reuse the memory of its body.
  host_.out.send(from.id, net::Ack{from.header.request_id}.to_header());
  return {};
}

}  // namespace disttf::roles
