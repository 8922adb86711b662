#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "net/wire/log_messages.h"
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

BodyPlan RangeReplica::primary_header(ConnectionId id, Connection& from) {
  const FrameHeader& header = from.header;
  if (header.kind == FrameKind::kPublish) {
    if (header.body_size > net::kMaxControlBodyBytes) {
      return refuse(id, from, kError, "no configuration is that large");
    }
    return into_bytes(from, Part::kConfig, header.body_size);
  }
  if (primary_ != id) {
    return refuse(id, from, kError, "another host is the primary of this range");
  }
  switch (header.kind) {
    case FrameKind::kFill:
      return received(id, from, copy_->fill(header, shard_));
    case FrameKind::kUpdate:
      return received(id, from, copy_->update(header, shard_));
    default:
      break;
  }
  if (net::is_bodiless<net::Heartbeat>(header)) {
    return {};
  }
  if (net::is_bodiless<net::Shutdown>(header)) {
    end(id);
    return {};
  }
  net::Complete complete;
  if (header.body_size != 0 || complete.from_header(header) ||
      !copy_->complete(complete.generation)) {
    return refuse(id, from, kError, "no frame that a backup takes now");
  }
  out_.send(id, net::Ack{header.request_id}.to_header());
  send_report();
  return {};
}

// A primary that was replaced in a newer view learns so from the chief.
BodyPlan RangeReplica::config_came(ConnectionId id, Connection& from) {
  net::PublishToBackup publish;
  if (const auto error = publish.from_header(from.header)) {
    return refuse(id, from, kError, error.message());
  }
  const bool is_newer = standing_ == net::Standing::kPrimary ? publish.view > view_.number
                                                             : publish.view >= view_.number;
  if (has_ended() || !is_newer) {
    return refuse(id, from, kLostPeers, "that view of the range is an older one");
  }
  if (primary_ != id) {
    out_.close(primary_);
  }
  primary_ = 0;
  copy_.reset();
  order_.learn(0, publish.view.chief);
  if (publish.view > view_.number) {
    view_ = {.number = publish.view, .primary = other_replica()};
    become_backup();
  }
  std::string json(reinterpret_cast<const char*>(from.bytes.data()), from.bytes.size());
  try {
    const RunConfig config = checked_config(json);
    if (json != config_json_ || !shard_) {
      make_shard(config, 0);
      config_json_ = std::move(json);
    }
  } catch (const std::exception& error) {  // what is wrong, or no memory
    return refuse(id, from, kError, error.what());
  }
  is_restored_ = false;
  end_.forget();
  primary_ = id;
  copy_ = std::make_shared<BackupReceiver>();
  from.copy = copy_;
  send_report();
  return {};
}

// A part of a frame of the primary's, or its header, has come.
BodyPlan RangeReplica::received(ConnectionId id, Connection& from,
                                const BackupReceiver::Outcome& outcome) {
  if (const auto* const read = std::get_if<BackupReceiver::Read>(&outcome)) {
    from.part = Part::kOfPrimary;
    return {.next = BodyPlan::Next::kInto, .places = read->places};
  }
  if (const auto* const refused = std::get_if<BackupReceiver::Refused>(&outcome)) {
    return refuse(id, from, kError, refused->why);
  }
  if (const auto* const filled = std::get_if<BackupReceiver::Filled>(&outcome)) {
    for (std::size_t rank = 0; rank < filled->incarnations.size(); ++rank) {
      order_.learn(rank, filled->incarnations[rank]);
    }
    generation_ = filled->generation;
    lineage_ = filled->lineage;
    out_.info("holds a copy of range " + std::to_string(index_) + " at step " +
              std::to_string(filled->step) + ", generation " +
              std::to_string(net::number_of(generation_)));
  } else {
    // Async: this host would take a push of a process before it for a new one, not for a repeat.
    const auto& updated = std::get<BackupReceiver::Updated>(outcome);
    order_.learn(updated.trainer, updated.incarnation);
  }
  out_.send(id, net::Ack{from.header.request_id}.to_header());
  return {};
}

}  // namespace disttf::roles
