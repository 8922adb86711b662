#include "roles/chief/shell/snapshot_link.h"

#include <algorithm>
#include <stdexcept>

#include "net/tcp/dial.h"
#include "net/wire/messages.h"
#include "net/wire/snapshot_messages.h"
#include "net/wire/text.h"
#include "run/process/log.h"
#include "run/process/ps_channel.h"
#include "run/process/tensor_memory.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

HostContact contact_of(const net::OpenedChannel& opened) {
  using Kind = HostContact::Kind;
  if (!opened.error) {
    return {.kind = Kind::kWelcomed,
            .replica_role = opened.welcome.replica_role,
            .state = opened.welcome.state};
  }
  // The address answered, but with no ps that serves this chief. A timeout would prove nothing.
  const bool is_turned_away =
      opened.error == std::errc::connection_refused || opened.error == net::WireError::kRefused;
  return {.kind = is_turned_away ? Kind::kTurnedAway : Kind::kUnreachable};
}

// The coordinator decides; but no memory is agreed on with a host that will not serve.
bool may_serve(const HostContact& contact) {
  return contact.replica_role != net::ReplicaRole::kBackup;
}

}  // namespace

SnapshotLink::SnapshotLink(const Task& task, std::size_t ps_index, std::size_t state_bytes,
                           const net::Interrupt& interrupt)
    : task_(task),
      interrupt_(interrupt),
      ps_{.job = net::Job::kPs, .index = ps_index},
      name_(describe(task.cluster, ps_)),
      state_bytes_(state_bytes),
      memory_(make_snapshot_reader(task, state_bytes)) {}

net::Deadline SnapshotLink::deadline_for(std::size_t bytes, net::Deadline latest) const {
  return std::min(latest, transfer_deadline(task_, bytes));
}

HostContact SnapshotLink::connect(const SnapshotRequest& request, std::uint8_t replica) {
  const auto deadline = deadline_for(0, request.deadline);
  auto opened = open_state_channel(task_, ps_.index, replica, interrupt_, deadline);
  channel_ = std::move(opened.channel);
  const HostContact contact = contact_of(opened);
  if (channel_ && memory_ && may_serve(contact)) {
    channel_ = memory_->carry(std::move(channel_), /*number=*/std::nullopt);
    // A host that does not answer the offer counts as unreachable.
    if (channel_->agree(most_of_snapshot(state_bytes_), deadline)) {
      return {.kind = HostContact::Kind::kUnreachable};
    }
    if (channel_->is_in_place()) {
      log_debug(describe_way_of_snapshots(name_));
    }
  }
  return contact;
}

std::error_code SnapshotLink::ask(FrameKind kind, const SnapshotRequest& request,
                                  std::size_t body_bytes, FrameHeader& reply) {
  const auto deadline = deadline_for(0, request.deadline);
  std::error_code error =
      channel_->send(net::SnapshotShardRequest{.name = request.sequence,
                                               .now = request.now,
                                               .with_tensors = kind == FrameKind::kGetSnapshotShard,
                                               .generation = request.generation}
                         .to_header(),
                     {}, deadline);
  if (!error) {  // a busy ps may take some time to leave them in memory
    error = channel_->receive_header(reply, deadline_for(body_bytes, request.deadline));
  }
  net::SnapshotShardReply snapshot;
  if (!error && (snapshot.from_header(reply) || reply.body_size != body_bytes)) {
    channel_->close();
    return net::WireError::kUnexpected;  // kAck: the ps does not have it
  }
  return error;
}

std::error_code SnapshotLink::find(const SnapshotRequest& request, std::uint64_t& step) {
  FrameHeader reply;
  const std::error_code error = ask(FrameKind::kFindSnapshotShard, request, 0, reply);
  step = reply.step;
  return error;
}

std::error_code SnapshotLink::fetch(const SnapshotRequest& request, std::size_t range_begin,
                                    std::span<const std::span<float>> places, std::uint64_t& step) {
  std::size_t bytes = 0;
  for (const std::span<float> place : places) {
    bytes += place.size_bytes();
  }
  FrameHeader reply;
  std::error_code error = ask(FrameKind::kGetSnapshotShard, request, bytes, reply);
  if (!error && reply.range_begin != range_begin) {
    // A ps with another list of ps would fill the wrong part of the state.
    channel_->close();
    error = net::WireError::kUnexpected;
  }
  step = reply.step;
  const auto deadline = deadline_for(bytes, request.deadline);
  // Received into the state itself, without a second copy.
  for (auto place = places.begin(); !error && place != places.end(); ++place) {
    error = channel_->receive_body(std::as_writable_bytes(*place), deadline);
  }
  return error;
}

std::error_code SnapshotLink::start_writing(const SnapshotRequest& request, const SaveId& id) {
  const net::WriteSnapshotShard shard_file{
      .attempt = id.attempt,
      .shard = static_cast<std::uint32_t>(ps_.index),
      .shards = static_cast<std::uint32_t>(task_.cluster.ps.size())};
  return channel_->send(
      net::WriteSnapshotShardRequest{
          .step = id.step, .name = request.sequence, .generation = request.generation}
          .to_header(),
      net::encode(shard_file), deadline_for(0, request.deadline));
}

std::variant<ShardFile, ShardNotWritten> SnapshotLink::await_written(net::Deadline deadline) {
  FrameHeader reply;
  std::string text;
  std::error_code error;
  do {
    error = channel_->receive_header(reply, deadline_for(0, deadline));
  } while (!error && net::is_bodiless<net::Heartbeat>(reply));  // it is still writing
  const bool is_written = !error && !net::Written{}.from_header(reply);
  if (is_written || (!error && !net::NotWritten{}.from_header(reply))) {
    const std::size_t most = is_written ? net::kMaxWrittenBodyBytes : net::kMaxControlBodyBytes;
    error = receive_text(reply.body_size, most, deadline_for(0, deadline), text);
  } else if (!error) {
    channel_->close();
    error = net::WireError::kUnexpected;  // kAck: the ps no longer has the snapshot
  }
  if (error) {
    // The file may be complete, but no ps confirms it.
    return ShardNotWritten{
        .is_lost = true,
        .sentence = name_ + " did not confirm that it has written its range: " + error.message()};
  }
  if (!is_written) {
    return ShardNotWritten{.sentence =
                               name_ + " could not write its range: " + net::one_line(text)};
  }
  // The text comes from the ps, so its content is checked.
  try {
    return shard_file_from_json(text);
  } catch (const std::invalid_argument& wrong) {
    return ShardNotWritten{.sentence = name_ + " sent an invalid reply: " + wrong.what()};
  }
}

std::error_code SnapshotLink::receive_text(std::uint64_t size, std::size_t most,
                                           net::Deadline deadline, std::string& text) {
  // The size comes from the ps, so the memory for it is bounded.
  if (size > most) {
    channel_->close();
    return net::WireError::kBodyTooLarge;
  }
  return net::receive_text(*channel_, size, deadline, text);
}

}  // namespace disttf::roles
