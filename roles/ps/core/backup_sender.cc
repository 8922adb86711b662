#include "roles/ps/core/backup_sender.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "net/wire/bare_message.h"
#include "net/wire/messages.h"
#include "net/wire/replication.h"

namespace disttf::roles {
namespace {

void append_bytes(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

void BackupSender::fill(ConnectionId to, const net::ViewNumber& view) {
  connection_ = to;
  // The configuration goes first: the backup makes its shard from it before the state arrives.
  out_.send_text(to,
                 net::PublishToBackup{.view = view, .generation = state_.generation()}.to_header(),
                 state_.shared_config());
  send_state();
  send_best();
}

void BackupSender::send_best() {
  const BestEvaluation& best = state_.best();
  if (connection_ != 0 && best.step != 0) {
    out_.send(connection_, net::Best{.step = best.step, .loss = best.loss}.to_header());
  }
}

void BackupSender::send_state() {
  Shard& shard = *state_.shard();
  const ShardIdentity identity = shard.identity();
  const ShardCounters& counters = identity.counters;
  const std::vector<std::span<const float>> tensors = shard.tensors();
  // The state is copied: steps go on while this body waits in the queue of a slow backup.
  std::vector<std::byte> body;
  body.reserve(net::kBodyBytes<net::FillHead> +
               identity.trainers.size() * net::kBodyBytes<net::FillTrainer> +
               tensors.size() * shard.range().size() * sizeof(float));
  append_bytes(
      body, net::encode(net::FillHead{
                .lineage = state_.lineage(),
                .counters = {counters.pushes, counters.applied, counters.repeats, counters.dropped,
                             counters.staleness_sum, counters.staleness_max},
                .trainers = static_cast<std::uint32_t>(identity.trainers.size()),
                .tensors = static_cast<std::uint32_t>(tensors.size())}));
  for (const TrainerIdentity& trainer : identity.trainers) {
    append_bytes(body, net::encode(net::FillTrainer{.incarnation = trainer.incarnation,
                                                    .last_sequence = trainer.last_sequence,
                                                    .clock = trainer.clock,
                                                    .used = trainer.used}));
  }
  for (const std::span<const float> tensor : tensors) {
    append_bytes(body, std::as_bytes(tensor));
  }
  out_.send(connection_,
            // begin_fill() comes after the tensors are read, with nothing in between: each later
            // update gets a higher entry, and no update is both in the state and sent after it.
            net::Fill{.entry = log_.begin_fill(),
                      .step = identity.step,
                      .range_begin = shard.range().begin,
                      .generation = state_.generation(),
                      .finished = shard.is_concluded()}
                .to_header(),
            std::move(body));
}

void BackupSender::forward(const ShardUpdate& update) {
  const ReplicationLog::Index entry = log_.append();
  // The entry is counted even without a backup, so that answers requested before a backup connects
  // refer to a fixed position.
  if (connection_ == 0) {
    return;
  }
  const Shard& shard = *state_.shard();
  std::vector<std::byte> head = net::encode(
      // Sync: an update stands for many trainers, so no single incarnation identifies it.
      net::UpdateHead{.incarnation = shard.config().sync_replicas ? 0 : update.push.incarnation,
                      .trainers = {update.trainers.begin(), update.trainers.end()}});
  head.resize(net::padded_update_head_bytes(shard.config().trainers));
  const float* const begin = update.gradient.data();
  // If a state lies behind the gradient, both are sent as one contiguous block.
  const float* const end = update.state.empty() ? begin + update.gradient.size()
                                                : update.state.data() + update.state.size();
  out_.add(SendFrame{.to = connection_,
                     // Borrowed: the gradient stays valid until the next call to the shard, and
                     // effects are carried out before that.
                     .header = net::Update{.entry = entry,
                                           .step = update.push.step,
                                           .push = update.push.sequence,
                                           .range_begin = shard.range().begin,
                                           .generation = state_.generation()}
                                   .to_header(),
                     .body = std::move(head),
                     .borrowed = std::as_bytes(std::span(begin, end))});
}

void BackupSender::conclude() {
  // Counted without a backup too, as in forward().
  const ReplicationLog::Index entry = log_.append();
  if (connection_ != 0) {
    out_.send(connection_,
              net::Conclude{
                  .entry = entry, .step = state_.shard()->step(), .generation = state_.generation()}
                  .to_header());
  }
}

BackupSender::Heard BackupSender::heard(const net::FrameHeader& header) {
  if (header.body_size != 0) {
    return Heard::kNonsense;
  }
  if (!net::Heartbeat{}.from_header(header)) {
    // Reading the frame has restarted the connection's heartbeat timeout; nothing else is needed.
    return Heard::kNothing;
  }
  net::Ack ack;
  // An acknowledgement of an entry that was never sent is a protocol error.
  if (ack.from_header(header) || ack.request_id > log_.head()) {
    return Heard::kNonsense;
  }
  switch (log_.acknowledged(ack.request_id)) {
    case ReplicationLog::Progress::kNone:
      break;
    case ReplicationLog::Progress::kFilled:
      // COMPLETE is sent only now: from complete() on no answer may depend on what the backup
      // lacks, so trainers would have to wait for the whole state to arrive.
      out_.send(
          connection_,
          net::Complete{.entry = log_.complete(), .generation = state_.generation()}.to_header());
      break;
    case ReplicationLog::Progress::kComplete:
      return Heard::kCompleted;
  }
  return Heard::kAck;
}

void BackupSender::send_heartbeat() {
  if (connection_ != 0) {
    out_.send(connection_, net::Heartbeat{}.to_header());
  }
}

bool BackupSender::lose() {
  if (connection_ == 0) {
    return false;
  }
  // The caller reports each loss once, hence the result.
  out_.close(std::exchange(connection_, 0));
  log_.lose_backup();
  return true;
}

ConnectionId BackupSender::end() {
  if (connection_ != 0) {
    // Without SHUTDOWN the backup would count the end of this connection as the loss of the
    // primary.
    out_.send(connection_, net::Shutdown{}.to_header());
    out_.add(FinishConnection{connection_});
  }
  return std::exchange(connection_, 0);
}

// Sync: no answer may reveal a step that a failover would undo, because the trainer's next gradient
// would then be for a step that no ps has reached. Async: a trainer's own push is never undone, and
// parameters that include another trainer's push remain usable if that push is repeated.
bool BackupSender::is_safe(ReplicationLog::Index head) const {
  return log_.is_safe(head, state_.shard()->config().sync_replicas);
}

}  // namespace disttf::roles
