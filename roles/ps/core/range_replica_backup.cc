#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "net/wire/log_messages.h"
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

BodyPlan RangeReplica::primary_header(PeerConnection& from, const net::BodyInPlace& in_place) {
  const FrameHeader& header = from.header;
  // PUBLISH is the first frame of a new primary, so it is accepted before this host knows its role.
  if (header.kind == FrameKind::kPublish) {
    // The size comes from the peer, so the memory for it is bounded.
    if (header.body_size > net::kMaxConfigBodyBytes) {
      return from.refuse(out_, kError, "a configuration has at most 16 MiB");
    }
    return from.into_growing_bytes(PeerConnection::Part::kConfig);
  }
  // From here on frames apply to the copy, which belongs to one primary.
  if (primary_ != from.id) {
    return from.refuse(out_, kError, "another host is the primary of this range");
  }
  switch (header.kind) {
    case FrameKind::kFill:
      return received(from, copy_->fill(header, state_.shard()));
    case FrameKind::kUpdate:
      return received(from, copy_->update(header, state_.shard(), in_place));
    default:
      break;
  }
  if (net::is_bodiless<net::Heartbeat>(header)) {
    return {};
  }
  if (net::is_bodiless<net::Shutdown>(header)) {
    end(from.id);
    return {};
  }
  if (net::Best best; header.body_size == 0 && !best.from_header(header)) {
    state_.learn({.step = best.step, .loss = best.loss});
    return {};
  }
  net::Conclude conclude;
  net::Complete complete;
  // CONCLUDE and COMPLETE are acknowledged; COMPLETE also lets the chief choose this host.
  const bool is_taken = header.body_size == 0 &&
                        (!conclude.from_header(header) ? copy_->conclude(conclude, *state_.shard())
                                                       : !complete.from_header(header) &&
                                                             copy_->complete(complete.generation));
  if (!is_taken) {
    return refuse_primary(from, "not a frame that a backup accepts now");
  }
  out_.send(from.id, net::Ack{header.request_id}.to_header());
  send_report();
  return {};
}

// The primary may have answered trainers with what this host refuses, so the copy is no longer
// complete.
BodyPlan RangeReplica::refuse_primary(PeerConnection& from, const std::string& why) {
  copy_.reset();
  primary_ = 0;
  // Reported at once, so that the chief does not choose this host.
  send_report();
  return from.refuse(out_, kError, why);
}

// A primary that was replaced in a newer view learns of it from the chief.
BodyPlan RangeReplica::config_came(PeerConnection& from) {
  net::PublishToBackup publish;
  if (const auto error = publish.from_header(from.header)) {
    return from.refuse(out_, kError, error.message());
  }
  // A primary accepts a copy only by a strictly newer view; a backup also by its own.
  const bool is_newer = replica_role_ == net::ReplicaRole::kPrimary ? publish.view > view_.number
                                                                    : publish.view >= view_.number;
  if (has_ended() || !is_newer) {
    return from.refuse(out_, kLostPeers, "the view is older than this host's");
  }
  std::string json = from.take_text();
  RunConfig config;
  try {
    config = state_.checked_config(
        json,
        /*is_replicated=*/publish.view > view_.number || replica_role_ != net::ReplicaRole::kOnly);
  } catch (const std::invalid_argument& error) {
    return from.refuse(out_, kError, error.what());
  }
  // Only one primary fills a copy. The older connection may be that of a suspended process.
  if (primary_ != from.id) {
    out_.close(primary_);
  }
  primary_ = 0;
  copy_.reset();
  // The view names its chief, so an older chief that reaches this host later is refused.
  order_.learn(0, publish.view.chief);
  if (publish.view > view_.number) {
    view_ = {.number = publish.view, .primary = other_replica()};
    become_backup();
  }
  // A shard of the same run is kept: its memory is filled anew.
  try {
    if (json != state_.config_json() || !state_.shard()) {
      begin_run(config, std::move(json), 0);
    }
  } catch (const std::exception& error) {  // out of memory
    return from.refuse(out_, kError, error.what());
  }
  // The shard's numbers are being overwritten by FILL from here on.
  state_.invalidate();
  // An end that was recorded here belongs to the state that is being replaced.
  end_.forget();
  primary_ = from.id;
  copy_ = std::make_shared<BackupReceiver>();
  // The connection holds the receiver too: a newer primary may replace copy_ while a part of a
  // frame is being read into it.
  from.copy = copy_;
  send_report();
  return {};
}

// The header, or a part of the body, of a frame from the primary has arrived.
BodyPlan RangeReplica::received(PeerConnection& from, const BackupReceiver::Outcome& outcome) {
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
      order_.learn(rank, filled->incarnations[rank]);
    }
    state_.took_copy(filled->generation, filled->lineage);
    out_.info("holds a copy of range " + std::to_string(state_.index()) + " at step " +
              std::to_string(filled->step) + ", generation " +
              std::to_string(net::number_of(state_.generation())));
  } else {
    // Async: without this, this host would count a push of an older process as new and not as a
    // repeat.
    const auto& updated = std::get<BackupReceiver::Updated>(outcome);
    order_.learn(updated.trainer, updated.incarnation);
  }
  // For an UPDATE the acknowledgement also lets the primary reuse the memory of its body.
  out_.send(from.id, net::Ack{from.header.request_id}.to_header());
  return {};
}

}  // namespace disttf::roles
