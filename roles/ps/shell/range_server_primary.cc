#include <algorithm>
#include <asio/steady_timer.hpp>
#include <cstring>
#include <limits>
#include <random>

#include "net/transport/as_tuple.h"
#include "net/wire/backoff.h"
#include "roles/process/dial_host.h"
#include "roles/process/log.h"
#include "roles/ps/shell/ps_process.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

// Entries of the log that may be on their way to a host that is still being filled, the state
// itself among them: no trainer is answered while there are more. So beside the state at most two
// updates, in async mode two and one of each trainer, wait in memory for a host that is slow to
// take them, and training goes on as fast as it takes them.
constexpr std::uint64_t kMaxBacklog = 2;

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

asio::awaitable<void> RangeServer::keep_backup() {
  net::Backoff backoff(std::mt19937_64(std::random_device{}()));
  net::NameLookup lookup;
  asio::steady_timer pause(process_.context());
  const auto may_fill = [this] {
    return standing_ == net::Standing::kPrimary && phase_ == Phase::kTraining && !needs_acks_;
  };
  while (standing_ == net::Standing::kPrimary && !has_ended()) {
    if (may_fill()) {
      net::ConnectionLimits limits;
      limits.max_queued_bytes = std::numeric_limits<std::size_t>::max() / 2;  // is_safe() bounds it
      const net::Dialed dialed =
          co_await dial_host(process_.context(), task_, index_, other_replica(),
                             net::ChannelPurpose::kReplica, lookup, limits);
      if (dialed.connection && may_fill()) {
        backoff.reset();
        co_await fill_backup(dialed.connection);
      }
      if (dialed.connection) {
        dialed.connection->close();
      }
    }
    pause.expires_after(std::min(backoff.next(), kLongestDialPause));
    co_await pause.async_wait(net::kAsTuple);
  }
  reaching_ = false;
}

// As long as the other host is there.
asio::awaitable<void> RangeServer::fill_backup(Connection connection) {
  backup_ = connection;
  backup_complete_ = false;
  log_acked_ = log_head_;
  send_state(connection);
  const std::uint64_t filled = log_head_;
  std::uint64_t complete = std::numeric_limits<std::uint64_t>::max();
  while (backup_ == connection) {
    FrameHeader header;
    if (co_await connection->read_header(header, task_.timeouts.silence) || header.body_size != 0 ||
        backup_ != connection) {
      break;
    }
    if (header.kind == FrameKind::kHeartbeat) {
      continue;
    }
    if (header.kind != FrameKind::kAck || header.request_id > log_head_) {
      break;
    }
    log_acked_ = std::max(log_acked_, header.request_id);
    if (header.request_id == filled) {
      // From here on the other host may be made the primary, so nothing counts that it has not.
      needs_acks_ = true;
      complete = ++log_head_;
      connection->send(
          {.kind = FrameKind::kComplete, .request_id = complete, .generation = generation_});
    }
    if (header.request_id == complete) {
      backup_complete_ = true;
      log_info(describe(task_.cluster, other_host()) + " holds a copy of range " +
               std::to_string(index_));
      send_report();
    }
    answer_waiting();
  }
  if (backup_ == connection) {
    if (!process_.verdict()) {
      log_warning(describe(task_.cluster, other_host()) + " and its copy of range " +
                  std::to_string(index_) + " were lost");
    }
    lose_backup();
  }
}

// A copy of everything as it is now. Updates that follow it on the connection are made to it.
void RangeServer::send_state(const Connection& connection) {
  std::vector<std::byte> config;
  append(config, std::as_bytes(std::span(config_json_)));
  connection->send(
      {.kind = FrameKind::kPublish, .sequence = view_.number, .generation = generation_},
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
                                              .clock = trainer.clock}));
  }
  for (const std::span<const float> tensor : tensors) {
    append(body, std::as_bytes(tensor));
  }
  connection->send({.kind = FrameKind::kFill,
                    .request_id = ++log_head_,
                    .step = identity.step,
                    .range_begin = shard_->range().begin,
                    .generation = generation_},
                   std::move(body));
}

// The gradient is copied: its trainer may be gone, and another one's lie there, before it leaves.
void RangeServer::forward(const ShardUpdate& update) {
  if (!backup_ && !needs_acks_) {
    return;
  }
  ++log_head_;
  if (!backup_) {
    return;
  }
  std::vector<std::byte> body;
  body.reserve(net::kUpdateHeadBytes + update.gradient.size_bytes());
  append(body,
         net::encode(net::UpdateHead{.incarnation = update.push.incarnation,
                                     .trainer = static_cast<std::uint32_t>(update.push.trainer),
                                     .count = static_cast<std::uint32_t>(update.count)}));
  append(body, std::as_bytes(update.gradient));
  backup_->send({.kind = FrameKind::kUpdate,
                 .request_id = log_head_,
                 .step = update.push.step,
                 .sequence = update.push.sequence,
                 .range_begin = shard_->range().begin,
                 .generation = generation_},
                std::move(body));
}

void RangeServer::lose_backup() {
  if (!backup_) {
    return;
  }
  backup_->close();
  backup_.reset();
  backup_complete_ = false;
  send_report();
  answer_waiting();
}

// Sync: no reply may tell of a step that a failover would take back, since the next gradient would
// be for a step that nobody is at. Async: nobody's own push is taken back; whose parameters have
// seen another's that is made again loses nothing.
bool RangeServer::is_safe(const WaitingRequest& request) const {
  if (standing_ != net::Standing::kPrimary || request.header.kind == FrameKind::kGetConfig ||
      request.header.kind == FrameKind::kGoodbye) {
    return true;
  }
  if (!needs_acks_) {
    return !backup_ || log_head_ - log_acked_ <= kMaxBacklog;
  }
  return shard_->config().sync_replicas ? log_acked_ == log_head_ : log_acked_ >= request.log_index;
}

}  // namespace disttf::roles
