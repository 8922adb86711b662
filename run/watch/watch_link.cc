#include "run/watch/watch_link.h"

#include <utility>

#include "net/tcp/dial.h"
#include "net/wire/bare_message.h"
#include "net/wire/messages.h"
#include "net/wire/replication.h"
#include "net/wire/snapshot_messages.h"
#include "run/outcome.h"
#include "run/process/ps_channel.h"

namespace disttf::roles {

using net::FrameHeader;

WatchLink::WatchLink(const Task& task, std::size_t ps_index, const net::Interrupt& interrupt)
    : task_(task),
      interrupt_(interrupt),
      index_(ps_index),
      name_(describe(task.cluster, {.job = net::Job::kPs, .index = ps_index})) {}

std::error_code WatchLink::connect_to(std::uint8_t replica) {
  auto opened = open_state_channel(task_, index_, replica, interrupt_, transfer_deadline(task_, 0));
  // kLostPeers: that ps or that run has failed; another process may take its place.
  if (opened.error == net::WireError::kRefused && opened.refusal.exit_code != kLostPeers) {
    throw Failure(opened.refusal.exit_code, opened.refusal.sentence);
  }
  channel_ = std::move(opened.channel);
  welcome_ = opened.welcome;
  return opened.error;
}

std::error_code WatchLink::connect(bool is_replicated) {
  std::error_code error = connect_to(0);
  // The primary may be either host; the first one says whether it is.
  if (is_replicated && (error || welcome_.replica_role != net::ReplicaRole::kPrimary)) {
    error = connect_to(1);
    if (!error && welcome_.replica_role != net::ReplicaRole::kPrimary) {
      // Neither is the primary: the chief is about to choose one.
      close();
      error = net::WireError::kUnexpected;
    }
  }
  return error;
}

std::error_code WatchLink::get_config(std::string& json) {
  std::error_code error =
      channel_->send(net::GetConfig{++requests_}.to_header(), {}, transfer_deadline(task_, 0));
  FrameHeader header;
  if (!error) {
    error = channel_->receive_header(header, transfer_deadline(task_, 0));
  }
  json.clear();
  // ACK: nothing is published yet.
  if (error || net::is_bodiless<net::Ack>(header)) {
    return error;
  }
  // The size comes from the peer, so it is bounded.
  if (net::Config{}.from_header(header) || header.body_size > net::kMaxConfigBodyBytes) {
    return unexpected(header);
  }
  return net::receive_text(*channel_, header.body_size, transfer_deadline(task_, header.body_size),
                           json);
}

std::error_code WatchLink::watch(std::uint64_t step) {
  return channel_->send(net::Watch{.request_id = ++requests_, .step = step}.to_header(), {},
                        transfer_deadline(task_, 0));
}

std::error_code WatchLink::receive(math::Range range, std::span<float> place,
                                   std::optional<SnapshotPlan::Part>& part, bool& has_nothing) {
  part.reset();
  FrameHeader header;
  if (const auto error = channel_->receive_header(header, transfer_deadline(task_, 0))) {
    return error;
  }
  if (net::is_bodiless<net::Heartbeat>(header)) {
    return {};
  }
  // The run is over, and this host holds no result.
  if (net::is_bodiless<net::Ack>(header)) {
    has_nothing = true;
    return {};
  }
  net::SnapshotShardReply snapshot;
  // A size other than the range's would overwrite that of another ps.
  if (snapshot.from_header(header) || snapshot.range_begin != range.begin ||
      header.body_size != place.size_bytes()) {
    return unexpected(header);
  }
  if (const auto error = channel_->receive_body(std::as_writable_bytes(place),
                                                transfer_deadline(task_, header.body_size))) {
    return error;
  }
  part = SnapshotPlan::Part{
      .step = snapshot.step, .generation = snapshot.generation, .is_last = snapshot.is_result};
  return {};
}

// A refusal says why the run has failed.
std::error_code WatchLink::unexpected(const FrameHeader& header) {
  if (header.kind == net::FrameKind::kRefused) {
    const net::Refusal refusal =
        net::receive_refusal(*channel_, header, transfer_deadline(task_, 0));
    throw Failure(refusal.exit_code, refusal.sentence);
  }
  // The rest of the stream cannot be read, so the link is of no use.
  close();
  return net::WireError::kUnexpected;
}

}  // namespace disttf::roles
