#include "roles/ps/shell/range_server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "roles/process/log.h"
#include "roles/ps/shell/ps_process.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

namespace {

// A backup judges an absence later than its primary, which may know that the run is over.
constexpr std::chrono::seconds kPrimaryFirst{2};

}  // namespace

RangeServer::RangeServer(ParameterServer& process, std::uint8_t replica)
    : process_(process),
      replica_(replica),
      index_((process.task().self.index + process.task().cluster.ps.size() - replica) %
             process.task().cluster.ps.size()),
      task_(process.task()),
      trainers_(process.task(), Clock::now()),
      lineage_(process.task().incarnation) {}

std::variant<net::Welcome, net::Refusal> RangeServer::welcome(const net::Hello& hello) const {
  net::Welcome welcome{.incarnation = lineage_,
                       .state = net::ShardState::kEmpty,
                       .standing = standing_,
                       .generation = generation_,
                       .step = shard_ ? shard_->step() : 0,
                       .heartbeat_ms = static_cast<std::uint32_t>(kHeartbeatInterval.count())};
  if (is_finishing()) {
    welcome.state = net::ShardState::kFinished;
  } else if (phase_ == Phase::kTraining) {
    welcome.state = net::ShardState::kReady;
  }
  if (hello.purpose == net::ChannelPurpose::kProbe) {
    return welcome;
  }
  if (hello.purpose == net::ChannelPurpose::kReplica) {
    if (hello.from != other_host() || (standing_ == net::Standing::kOnly && shard_)) {
      return net::Refusal{.exit_code = kUsage,
                          .sentence = net::to_string(hello.from) + " keeps no copy of this range"};
    }
    return welcome;
  }
  if (hello.from.job != net::Job::kChief && hello.from.job != net::Job::kWorker) {
    return net::Refusal{.exit_code = kUsage,
                        .sentence = net::to_string(hello.from) +
                                    " is no trainer: only chief and "
                                    "workers push to " +
                                    process_.self_text()};
  }
  const bool is_chief = task_.cluster.rank_of(hello.from) == 0;
  if (hello.purpose == net::ChannelPurpose::kState && !is_chief) {
    return net::Refusal{.exit_code = kUsage, .sentence = "only the chief collects the state"};
  }
  if (hello.purpose == net::ChannelPurpose::kView &&
      (!is_chief || (standing_ == net::Standing::kOnly && shard_))) {
    return net::Refusal{.exit_code = kUsage,
                        .sentence = "only the chief makes views, of a run that has replicas"};
  }
  if (auto why = trainers_.reason_to_refuse(task_.cluster.rank_of(hello.from), hello)) {
    return net::Refusal{.exit_code = static_cast<std::uint8_t>(kLostPeers),
                        .sentence = std::move(*why)};
  }
  return welcome;
}

asio::awaitable<void> RangeServer::serve(Connection connection) {
  switch (connection->hello().purpose) {
    case net::ChannelPurpose::kState:
      co_return co_await serve_state(connection);
    case net::ChannelPurpose::kView:
      co_return co_await serve_view(connection);
    case net::ChannelPurpose::kReplica:
      co_return co_await serve_replica(connection);
    default:
      break;
  }
  const std::size_t rank = rank_of(connection);
  if (standing_ == net::Standing::kBackup) {
    trainers_.knock(rank, Clock::now());  // WELCOME has told it to ask the other host
    co_return;
  }
  if (trainers_.attach(rank, connection, Clock::now())) {
    log_info(connection->peer_text() + " joined");
    send_report();  // it is lacked no longer
    if (shard_) {
      shard_->join(rank);
    }
  }
  co_await serve_step(connection, rank);
  detach(connection, rank);
}

void RangeServer::detach(const Connection& connection, std::size_t rank) {
  if (!trainers_.detach(rank, connection, Clock::now())) {
    return;
  }
  if (shard_) {
    shard_->leave(rank);
    answer_waiting();  // async: it may have been the slowest
    deal_missing();    // elastic: it may have been the only one that was computing
  }
  if (!trainers_[rank].done && !process_.verdict()) {
    log_warning(connection->peer_text() + " was lost");
  }
  check_end();
}

asio::awaitable<void> RangeServer::serve_step(Connection connection, std::size_t rank) {
  while (connection->is_open()) {
    FrameHeader header;
    // No limit on silence: a step may take long. The control channel's heartbeats tell.
    if (co_await connection->read_header(header, milliseconds{0})) {
      break;
    }
    trainers_[rank].last_heard = Clock::now();
    if (!co_await handle(connection, rank, header)) {
      break;
    }
  }
}

void RangeServer::attach_control(const Connection& connection) {
  trainers_.attach(rank_of(connection), connection, Clock::now());
}

void RangeServer::hear(const Connection& connection, std::uint32_t generation) {
  TrainerRecord& record = trainers_[rank_of(connection)];
  record.last_heard = Clock::now();
  // Trainers name a generation only once every ps holds it. That this one does not means that
  // another process has taken its place. Only a trainer that it knows is believed: the
  // incarnation is a secret between the two.
  if (phase_ == Phase::kTraining && generation > generation_ &&
      connection->hello().incarnation == record.incarnation) {
    process_.leave(kLostPeers, "was replaced while it was silent: the run is in generation " +
                                   std::to_string(generation) + ", this task holds generation " +
                                   std::to_string(generation_));
  }
}

void RangeServer::detach_control(const Connection& connection) {
  trainers_.detach(rank_of(connection), connection, Clock::now());
  check_end();
}

void RangeServer::forgive(Clock::time_point now, Clock::duration missed) {
  trainers_.forgive(now, missed);
  chief_done_ = std::min(chief_done_ + missed, now);
  if (chief_leaves_) {
    chief_leaves_ = std::min(*chief_leaves_ + missed, now);
  }
}

void RangeServer::send_heartbeats() {
  for (const TrainerRecord& record : trainers_.records()) {
    if (record.waiting) {
      record.waiting->connection->send({.kind = FrameKind::kHeartbeat,
                                        .request_id = record.waiting->header.request_id,
                                        .step = shard_ ? shard_->step() : 0,
                                        .generation = generation_});
    }
  }
  for (const Connection& other : {backup_, primary_}) {
    if (other) {
      other->send({.kind = FrameKind::kHeartbeat, .generation = generation_});
    }
  }
  send_report();
}

std::optional<std::string> RangeServer::overdue(Clock::time_point now) const {
  // The chief always matters. Workers do when a step cannot be made without them: always in the
  // strict mode, with backup or elastic workers once too few are left, in async or after the last
  // step never.
  std::vector<bool> matters(trainers_.size(), false);
  matters[0] = true;
  const bool is_served_here =
      standing_ == net::Standing::kPrimary || (standing_ == net::Standing::kOnly && replica_ == 0);
  if (is_served_here && (!shard_ || (shard_->config().sync_replicas && !shard_->finished()))) {
    std::size_t present = 0;
    for (const TrainerRecord& record : trainers_.records()) {
      present += record.present() ? 1U : 0U;
    }
    std::size_t needed = trainers_.size();
    if (shard_ && shard_->config().elastic()) {
      needed = shard_->config().min_workers + task_.cluster.chief.size();
    } else if (shard_ && shard_->config().replicas_to_aggregate != 0) {
      needed = shard_->config().replicas_to_aggregate;
    }
    if (present < needed) {
      matters.assign(trainers_.size(), true);
    }
  }
  const auto absence = trainers_.overdue(is_backup() ? now - kPrimaryFirst : now, matters);
  if (!absence) {
    return std::nullopt;
  }
  const std::string limit = seconds_text(absence->limit);
  if (!absence->joined) {
    return "waited " + limit + " for " + trainers_.never_seen() + " to join";
  }
  const std::string name = describe(task_.cluster, task_.cluster.trainer(absence->rank));
  return (absence->rank == 0 ? "the chief, " + name + "," : name) + " has been gone for " + limit;
}

void RangeServer::refuse_all(const net::Refusal& verdict) {
  for (TrainerRecord& record : trainers_.records()) {
    if (record.step) {
      record.step->refuse(verdict, record.waiting ? record.waiting->header.request_id : 0);
    }
  }
  phase_ = Phase::kEnded;
}

}  // namespace disttf::roles
