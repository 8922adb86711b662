#include <utility>

#include "net/wire/log_messages.h"
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

// For as long as the other host is there.
void RangeReplica::reached(ConnectionId id, Clock::time_point now) {
  now_ = now;
  connections_.emplace(id, Connection(Role::kBackup, describe(task_.cluster, other_host()), {}));
  backup_ = id;
  send_state(id);
}

BodyPlan RangeReplica::backup_header(ConnectionId id, Connection& from) {
  const FrameHeader& header = from.header;
  net::Ack ack;
  if (header.body_size != 0 || backup_ != id) {
    return {.next = BodyPlan::Next::kStop};
  }
  if (!net::Heartbeat{}.from_header(header)) {
    return {};
  }
  if (ack.from_header(header) || ack.request_id > log_.head()) {
    return {.next = BodyPlan::Next::kStop};
  }
  switch (log_.acknowledged(ack.request_id)) {
    case ReplicationLog::Progress::kNone:
      break;
    case ReplicationLog::Progress::kFilled:
      out_.send(id, net::Complete{.entry = log_.complete(), .generation = generation_}.to_header());
      break;
    case ReplicationLog::Progress::kComplete:
      out_.info(from.peer + " holds a copy of range " + std::to_string(index_));
      send_report();
      break;
  }
  answer_waiting();
  return {};
}

// A copy of everything as it is now. Updates that follow it on the connection are made to it.
void RangeReplica::send_state(ConnectionId to) {
  std::vector<std::byte> config;
  append(config, std::as_bytes(std::span(config_json_)));
  out_.send(to, net::PublishToBackup{.view = view_.number, .generation = generation_}.to_header(),
            std::move(config));
  const ShardIdentity identity = shard_->identity();
  const ShardCounters& counters = identity.counters;
  const std::vector<std::span<const float>> tensors = shard_->tensors();
  std::vector<std::byte> body;
  body.reserve(net::kFillHeadBytes + identity.trainers.size() * net::kFillTrainerBytes +
               tensors.size() * shard_->range().size() * sizeof(float));
  append(body, net::encode(net::FillHead{
                   .lineage = lineage_,
                   .counters = {counters.pushes, counters.applied, counters.repeats,
                                counters.dropped, counters.staleness_sum, counters.staleness_max},
                   .trainers = static_cast<std::uint32_t>(identity.trainers.size()),
                   .tensors = static_cast<std::uint32_t>(tensors.size())}));
  for (const ShardIdentity::Trainer& trainer : identity.trainers) {
    append(body, net::encode(net::FillTrainer{.incarnation = trainer.incarnation,
                                              .last_sequence = trainer.last_sequence,
                                              .clock = trainer.clock,
                                              .used = trainer.used}));
  }
  for (const std::span<const float> tensor : tensors) {
    append(body, std::as_bytes(tensor));
  }
  out_.send(to,
            net::Fill{.entry = log_.begin_fill(),
                      .step = identity.step,
                      .range_begin = shard_->range().begin,
                      .generation = generation_}
                .to_header(),
            std::move(body));
}

// The gradient is copied: its trainer may be gone, and another one's lie there, before it leaves.
void RangeReplica::forward(const ShardUpdate& update) {
  const ReplicationLog::Index entry = log_.append();
  if (backup_ == 0) {
    return;
  }
  std::vector<std::byte> body;
  body.reserve(net::update_head_bytes(trainers_.size()) + update.gradient.size_bytes());
  append(body, net::encode(net::UpdateHead{
                   .incarnation = shard_->config().sync_replicas ? 0 : update.push.incarnation,
                   .trainers = {update.trainers.begin(), update.trainers.end()}}));
  append(body, std::as_bytes(update.gradient));
  out_.send(backup_,
            net::Update{.entry = entry,
                        .step = update.push.step,
                        .push = update.push.sequence,
                        .range_begin = shard_->range().begin,
                        .generation = generation_}
                .to_header(),
            std::move(body));
}

void RangeReplica::lose_backup() {
  if (backup_ == 0) {
    return;
  }
  out_.close(std::exchange(backup_, 0));
  log_.lose_backup();
  send_report();
  answer_waiting();
}

// Sync: no reply may tell of a step that a failover would take back, since the next gradient would
// be for a step that nobody is at. Async: nobody's own push is taken back; whose parameters have
// seen another's that is made again loses nothing.
bool RangeReplica::is_safe(const WaitingRequest& request) const {
  if (standing_ != net::Standing::kPrimary || request.is<net::GetConfig>() ||
      request.is<net::Goodbye>()) {
    return true;
  }
  return log_.is_safe(request.log_index, shard_->config().sync_replicas);
}

}  // namespace disttf::roles
