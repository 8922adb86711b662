#include <array>
#include <cstring>
#include <new>
#include <stdexcept>

#include "roles/process/log.h"
#include "roles/ps/shell/ps_process.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

}  // namespace

asio::awaitable<void> RangeServer::serve_replica(Connection connection) {
  while (connection->is_open()) {
    FrameHeader header;
    if (co_await connection->read_header(header, task_.timeouts.silence) ||
        !co_await take_replica_frame(connection, header)) {
      break;
    }
  }
  if (primary_ == connection) {
    connection->close();
    primary_.reset();
  }
}

asio::awaitable<bool> RangeServer::take_replica_frame(const Connection& connection,
                                                      const FrameHeader& header) {
  if (header.kind == FrameKind::kPublish) {
    co_return co_await take_config(connection, header);
  }
  if (primary_ != connection) {
    co_return refuse(connection, header, kError, "another host is the primary of this range");
  }
  switch (header.kind) {
    case FrameKind::kFill:
      co_return co_await take_fill(connection, header);
    case FrameKind::kUpdate:
      co_return co_await take_update(connection, header);
    default:
      break;
  }
  if (header.body_size == 0 && header.kind == FrameKind::kHeartbeat) {
    co_return true;
  }
  if (header.body_size == 0 && header.kind == FrameKind::kShutdown) {
    end(connection);
    co_return true;
  }
  if (header.body_size != 0 || header.kind != FrameKind::kComplete || !filled_ ||
      header.generation != generation_) {
    co_return refuse(connection, header, kError, "no frame that a backup takes now");
  }
  complete_ = true;
  connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  send_report();
  co_return true;
}

// `sequence` is the view in which the sender is the primary. One that was replaced in a newer view
// learns so from the chief.
asio::awaitable<bool> RangeServer::take_config(const Connection& connection,
                                               const FrameHeader& header) {
  if (header.body_size > net::kMaxControlBodyBytes) {
    co_return refuse(connection, header, kError, "no configuration is that large");
  }
  std::string json(header.body_size, '\0');
  if (co_await connection->read_body(std::as_writable_bytes(std::span(json)),
                                     task_.timeouts.silence)) {
    co_return false;
  }
  const bool is_newer = standing_ == net::Standing::kPrimary ? header.sequence > view_.number
                                                             : header.sequence >= view_.number;
  if (has_ended() || !is_newer || header.sequence > std::numeric_limits<std::uint32_t>::max()) {
    co_return refuse(connection, header, kLostPeers, "that view of the range is an older one");
  }
  if (primary_ && primary_ != connection) {
    primary_->close();
  }
  primary_.reset();
  complete_ = false;
  filled_ = false;
  if (header.sequence > view_.number) {
    view_ = {.number = static_cast<std::uint32_t>(header.sequence),
             .primary = static_cast<std::uint8_t>(replica_ == 0 ? 1 : 0)};
    become_backup();
  }
  try {
    const RunConfig config = checked_config(json);
    if (json != config_json_ || !shard_) {
      make_shard(config, nullptr);
      config_json_ = std::move(json);
    }
  } catch (const std::exception& error) {  // what is wrong, or no memory
    co_return refuse(connection, header, kError, error.what());
  }
  phase_ = Phase::kWaitingForChief;
  primary_ = connection;
  send_report();
  co_return true;
}

asio::awaitable<bool> RangeServer::take_fill(const Connection& connection,
                                             const FrameHeader& header) {
  const std::shared_ptr<Shard> shard = shard_;
  filled_ = false;
  complete_ = false;
  std::array<std::byte, net::kFillHeadBytes> bytes{};
  net::FillHead head;
  if (header.body_size < bytes.size() ||
      co_await connection->read_body(bytes, task_.timeouts.silence) || net::decode(bytes, head)) {
    co_return refuse(connection, header, kError, "not the state of a range");
  }
  const std::size_t tensor_bytes = shard->range().size() * sizeof(float);
  const std::size_t plain = shard->state_size() / std::max<std::size_t>(shard->range().size(), 1);
  const bool with_previous = head.tensors == plain + 1 && shard->config().every_gradient_counts();
  if (head.trainers != trainers_.size() || (head.tensors != plain && !with_previous) ||
      header.range_begin != shard->range().begin ||
      header.body_size !=
          bytes.size() + head.trainers * net::kFillTrainerBytes + head.tensors * tensor_bytes) {
    co_return refuse(connection, header, kError, "the state of another range");
  }
  ShardIdentity identity{.step = header.step,
                         .counters = {.pushes = head.counters[0],
                                      .applied = head.counters[1],
                                      .repeats = head.counters[2],
                                      .dropped = head.counters[3],
                                      .staleness_sum = head.counters[4],
                                      .staleness_max = head.counters[5]},
                         .trainers = {}};
  for (std::uint32_t rank = 0; rank < head.trainers; ++rank) {
    std::array<std::byte, net::kFillTrainerBytes> record{};
    net::FillTrainer trainer;
    if (co_await connection->read_body(record, task_.timeouts.silence) ||
        net::decode(record, trainer)) {
      co_return false;
    }
    identity.trainers.push_back({.incarnation = trainer.incarnation,
                                 .last_sequence = trainer.last_sequence,
                                 .clock = trainer.clock});
  }
  if (primary_ != connection) {
    co_return false;
  }
  for (const std::span<float> place : shard->begin_fill(with_previous)) {
    if (co_await connection->read_body(std::as_writable_bytes(place), task_.timeouts.silence) ||
        primary_ != connection) {
      co_return false;
    }
  }
  shard->finish_fill(identity, with_previous);
  generation_ = header.generation;
  lineage_ = head.lineage;
  filled_ = true;
  log_info("holds a copy of range " + std::to_string(index_) + " at step " +
           std::to_string(header.step) + ", generation " + std::to_string(generation_));
  connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  co_return true;
}

asio::awaitable<bool> RangeServer::take_update(const Connection& connection,
                                               const FrameHeader& header) {
  const std::shared_ptr<Shard> shard = shard_;
  const std::span<float> inbox = shard->update_inbox();
  std::array<std::byte, net::kUpdateHeadBytes> bytes{};
  net::UpdateHead head;
  if (!filled_ || header.generation != generation_ || header.range_begin != shard->range().begin ||
      header.body_size != bytes.size() + inbox.size_bytes()) {
    co_return refuse(connection, header, kError, "an update of another state");
  }
  if (co_await connection->read_body(bytes, task_.timeouts.silence)) {
    co_return false;
  }
  const bool is_sync = shard->config().sync_replicas;
  if (net::decode(bytes, head) || head.trainer >= trainers_.size() ||
      head.count > trainers_.size() || shard->finished() ||
      (is_sync && header.step != shard->step())) {
    co_return refuse(connection, header, kError, "an update that does not follow the last one");
  }
  if (co_await connection->read_body(std::as_writable_bytes(inbox), task_.timeouts.silence) ||
      primary_ != connection) {
    co_return false;
  }
  shard->take_update({.trainer = head.trainer,
                      .incarnation = head.incarnation,
                      .step = header.step,
                      .sequence = header.sequence},
                     head.count);
  connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  co_return true;
}

}  // namespace disttf::roles
