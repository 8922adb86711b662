#include "roles/ps/core/range_replica.h"

#include <algorithm>
#include <utility>

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

// A backup reports an overdue trainer later than its primary, because the primary may have learned
// that the run is over.
constexpr std::chrono::seconds kPrimaryFirst{2};

}  // namespace

RangeReplica::RangeReplica(const Task& task, std::uint8_t replica, std::size_t threads,
                           RangeState::MakeArena make_arena, ProcessOrder& order,
                           Clock::time_point now)
    : task_(task),
      order_(order),
      replica_(replica),
      now_(now),
      trainers_(task, now),
      state_(task, (task.self.index + task.cluster.ps.size() - replica) % task.cluster.ps.size(),
             threads, std::move(make_arena),
             [this](const ShardUpdate& update) { backup_.forward(update); }),
      end_(task.timeouts),
      times_(task.cluster.trainer_count()) {
  count_needed();
}

// ---------------------------------------------------------------------------------- connections

std::variant<net::Welcome, net::Refusal> RangeReplica::welcome(const net::Hello& hello) const {
  net::Welcome welcome{.incarnation = state_.lineage(),
                       .state = net::ShardState::kEmpty,
                       .replica_role = replica_role_,
                       .generation = state_.generation(),
                       .step = state_.shard() ? state_.shard()->step() : 0,
                       .heartbeat_ms = static_cast<std::uint32_t>(kHeartbeatInterval.count())};
  if (is_finishing()) {
    welcome.state = net::ShardState::kFinished;
  } else if (is_training()) {
    welcome.state = net::ShardState::kReady;
  }
  // A probe is answered whatever its sender is.
  if (hello.purpose == net::ChannelPurpose::kProbe) {
    return welcome;
  }
  if (hello.purpose == net::ChannelPurpose::kReplica) {
    if (hello.from != other_host() || trains_without_replicas()) {
      return net::Refusal{.exit_code = kUsage,
                          .sentence = net::to_string(hello.from) + " keeps no copy of this range"};
    }
    return welcome;
  }
  // Evaluators are no trainers: they may read a state, and nothing waits for them.
  if (hello.from.job == net::Job::kEvaluator && hello.purpose == net::ChannelPurpose::kState) {
    return welcome;
  }
  // Whatever the purpose, only trainers get beyond this point.
  if (hello.from.job != net::Job::kChief && hello.from.job != net::Job::kWorker) {
    return net::Refusal{.exit_code = kUsage,
                        .sentence = net::to_string(hello.from) +
                                    " is no trainer: only chief and "
                                    "workers push to " +
                                    describe(task_.cluster, task_.self)};
  }
  const bool is_chief = rank_of(hello) == 0;
  if (hello.purpose == net::ChannelPurpose::kState && !is_chief) {
    return net::Refusal{.exit_code = kUsage, .sentence = "only the chief collects the state"};
  }
  if (hello.purpose == net::ChannelPurpose::kView && (!is_chief || trains_without_replicas())) {
    return net::Refusal{.exit_code = kUsage,
                        .sentence = "only the chief makes views, of a run that has replicas"};
  }
  return welcome;
}

bool RangeReplica::connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                             Clock::time_point now, bool is_candidate) {
  now_ = now;
  PeerConnection connection(id, Role::kTrainer, peer, hello);
  switch (hello.purpose) {
    case net::ChannelPurpose::kView:
      out_.close(view_channel_);  // of a lost chief
      view_channel_ = id;
      connection.role = Role::kView;
      send_report();
      break;
    case net::ChannelPurpose::kReplica:
      connection.role = Role::kPrimary;
      break;
    case net::ChannelPurpose::kState:
      take_evaluator(id, hello.incarnation);
      connection.role = Role::kEvaluator;
      break;
    default:
      connection.rank = rank_of(hello);
      if (replica_role_ == net::ReplicaRole::kBackup) {
        // Not registered: a trainer that asks a backup counts as a redirected client only.
        trainers_.redirected(connection.rank, now);  // WELCOME has redirected it to the other host
        return false;
      }
      if (is_candidate) {
        connection.role = Role::kCandidate;
      } else {
        join(connection);
      }
      break;
  }
  connections_.emplace(id, std::move(connection));
  return true;
}

void RangeReplica::join(const PeerConnection& trainer) {
  if (attach(trainer.id, trainer.hello)) {
    log_joined(trainer.rank, trainer.peer);
    send_report();  // the report may have listed it as unreachable
    if (state_.shard()) {
      state_.shard()->policy().join(trainer.rank);
    }
  }
}

void RangeReplica::let_in(ConnectionId id, Clock::time_point now) {
  now_ = now;
  PeerConnection& chief = connections_.at(id);
  if (std::exchange(chief.role, Role::kTrainer) == Role::kCandidate) {
    join(chief);
  }
}

BodyPlan RangeReplica::header(ConnectionId id, const FrameHeader& header, Clock::time_point now,
                              const net::BodyInPlace& in_place) {
  now_ = now;
  PeerConnection& from = connections_.at(id);
  // Kept for body(), which is called when the whole body has arrived.
  from.header = header;
  switch (from.role) {
    case Role::kView:
      return view_header(from);
    case Role::kPrimary:
      return primary_header(from, in_place);
    case Role::kBackup:
      return backup_header(from);
    case Role::kEvaluator:
      return evaluator_header(from);
    case Role::kCandidate:
      return candidate_header(from);
    case Role::kTrainer:
      break;
  }
  TrainerRecord& record = trainers_[from.rank];
  record.last_received = now;
  if (record.step == id && header.kind != FrameKind::kHeartbeat) {
    record.answered.reset();  // it has received what it was sent
  }
  return trainer_header(from, in_place);
}

BodyPlan RangeReplica::body(ConnectionId id, Clock::time_point now) {
  now_ = now;
  PeerConnection& from = connections_.at(id);
  // Taken out first: a handler may ask for another part of the same body.
  const PeerConnection::Part part = std::exchange(from.part, PeerConnection::Part::kNone);
  const bool is_config =
      part == PeerConnection::Part::kPublish || part == PeerConnection::Part::kConfig;
  if (is_config && !from.has_all_bytes()) {
    return from.grow_bytes(part);
  }
  switch (part) {
    case PeerConnection::Part::kNone:
      break;
    case PeerConnection::Part::kPublish:
      return publish_came(from);
    case PeerConnection::Part::kRestore:
      return restore_came(from);
    case PeerConnection::Part::kStaleRestore:
      answers_.fence(from.id, from.header.request_id);
      break;
    case PeerConnection::Part::kGradient:
    case PeerConnection::Part::kPackedGradient:
    case PeerConnection::Part::kUnwantedGradient:
    case PeerConnection::Part::kFencedGradient:
    case PeerConnection::Part::kOutdatedGradient:
      return took_push(pushes_.body(from, part, now_));
    case PeerConnection::Part::kView: {
      net::View view;
      if (net::decode(from.bytes, view)) {
        return from.refuse(out_, kError, "malformed VIEW frame");
      }
      take_view(view);
      break;
    }
    case PeerConnection::Part::kConfig:
      return config_came(from);
    case PeerConnection::Part::kOfPrimary:
      // A newer primary has replaced this one while the part was being read.
      if (primary_ != id) {
        return {.next = BodyPlan::Next::kStop};
      }
      return received(from, from.copy->part());
  }
  return {};
}

// The gradient may have completed the last step.
BodyPlan RangeReplica::took_push(BodyPlan plan) {
  count_needed();
  serve_evaluators();
  return plan;
}

void RangeReplica::closed(ConnectionId id, Clock::time_point now) {
  now_ = now;
  const auto found = connections_.find(id);
  const PeerConnection from = std::move(found->second);
  connections_.erase(found);
  switch (from.role) {
    case Role::kView:
      if (view_channel_ == id) {
        view_channel_ = 0;
        views_lost_ = now;
      }
      return;
    case Role::kPrimary:
      if (primary_ == id) {
        out_.close(id);
        primary_ = 0;
      }
      return;
    case Role::kBackup:
      if (backup_.connection() == id) {
        if (!verdict_) {
          out_.warn(from.peer + " and its copy of range " + std::to_string(state_.index()) +
                    " were lost");
        }
        lose_backup();
      }
      return;
    case Role::kEvaluator:
      std::erase_if(evaluators_, [id](const Evaluator& each) { return each.id == id; });
      return;
    case Role::kCandidate:
      return;
    case Role::kTrainer:
      break;
  }
  // detach() returns false if the trainer is still present.
  if (!trainers_.detach(from.rank, id, now)) {
    return;
  }
  trainer_left(from.rank);
  log_lost(from.rank);
  check_end(now);
}

void RangeReplica::log_joined(std::size_t rank, const std::string& peer) {
  if (trainers_[rank].name.empty()) {
    out_.info(peer + " joined");
  }
  trainers_[rank].name = peer;
}

// Logs the loss once the trainer's process has no connection left.
void RangeReplica::log_lost(std::size_t rank) {
  TrainerRecord& record = trainers_[rank];
  if (record.alive() || record.name.empty()) {
    return;
  }
  const std::string name = std::exchange(record.name, {});
  // The loss of a trainer that has finished, or of a failed run, is not worth a warning.
  if (!record.done && !verdict_) {
    out_.warn(name + " was lost");
  }
}

void RangeReplica::attach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now) {
  now_ = now;
  attach(id, hello);
}

bool RangeReplica::attach(ConnectionId id, const net::Hello& hello) {
  const std::size_t rank = rank_of(hello);
  const TrainerRecord& record = trainers_[rank];
  if (rank == 0 && (!record.alive() || record.incarnation != hello.incarnation)) {
    views_lost_ = now_;  // its view channel may open a moment later
  }
  // Compared before and after: a new process closes the channels of the older one in attach().
  const bool was_present = record.present();
  const bool is_new = trainers_.attach(rank, id, hello, now_, out_);
  if (MicroBatchScheduler* const scheduler = state_.scheduler();
      scheduler != nullptr && hello.purpose == net::ChannelPurpose::kStep) {
    scheduler->forget(rank);
  }
  if (was_present && (is_new || !record.present())) {
    trainer_left(rank);  // the previous process
  }
  count_needed();
  return is_new;
}

void RangeReplica::trainer_left(std::size_t rank) {
  count_needed();
  if (state_.shard()) {
    state_.shard()->policy().leave(rank);
    if (MicroBatchScheduler* const scheduler = state_.scheduler()) {
      scheduler->forget(rank);
    }
    answers_.answer_after(0, now_);  // the chief may wait for it; async: it may be the slowest
    answers_.schedule_missing();     // elastic: it may have been the only one that computed
  }
}

std::optional<std::string> RangeReplica::record_heartbeat(const net::Hello& hello,
                                                          net::Generation generation,
                                                          Clock::time_point now) {
  TrainerRecord& record = trainers_[rank_of(hello)];
  record.last_received = now;
  // Trainers name a generation only once every ps holds it. If this ps does not, another process
  // has taken its place. Only a trainer that is registered here is trusted: its incarnation is a
  // secret between the two.
  if (!is_training() || generation <= state_.generation() ||
      hello.incarnation != record.incarnation) {
    return std::nullopt;
  }
  const std::uint64_t theirs = net::number_of(generation);
  const std::uint64_t ours = net::number_of(state_.generation());
  return "was replaced while it was silent: the run is in generation " + std::to_string(theirs) +
         (theirs > ours ? "" : " of a newer chief") + ", this task holds generation " +
         std::to_string(ours);
}

void RangeReplica::detach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now) {
  now_ = now;
  trainers_.detach(rank_of(hello), id, now);
  log_lost(rank_of(hello));
  check_end(now);
}

// ------------------------------------------------------------------------------------------ time

void RangeReplica::forgive(Clock::duration missed, Clock::time_point now) {
  trainers_.forgive(now, missed);
  end_.forgive(missed, now);
  views_lost_ = std::min(views_lost_ + missed, now);
}

void RangeReplica::close_timed_out(Clock::time_point now) {
  now_ = now;
  trainers_.close_timed_out(now, out_);
  // A connected chief sends views to every host. If this one receives none, the chief sends them to
  // another process in this host's place, and a trainer whose answer needs a view would wait here
  // forever.
  const bool is_passed_over = backup_.needs_acks() && !backup_.is_complete() &&
                              view_channel_ == 0 && trainers_[0].alive() &&
                              now - views_lost_ >= task_.timeouts.heartbeat_timeout;
  if (!is_passed_over || is_finishing()) {
    return;
  }
  out_.warn("range " + std::to_string(state_.index()) + ": no view from the chief for " +
            seconds_text(task_.timeouts.heartbeat_timeout) +
            "; closing trainers' connections, so that they try another host");
  trainers_.close_all(out_);
  views_lost_ = now;  // if this host was not replaced, they and the chief come back
}

void RangeReplica::send_heartbeats(Clock::time_point now) {
  now_ = now;
  for (const TrainerRecord& record : trainers_.records()) {
    if (record.waiting) {
      out_.send(record.waiting->connection,
                net::Heartbeat{.request_id = record.waiting->id()}.to_header());
    }
  }
  heartbeat_evaluators();
  backup_.send_heartbeat();
  if (primary_ != 0) {
    out_.send(primary_, net::Heartbeat{}.to_header());
  }
  send_report();
}

void RangeReplica::count_needed() {
  const bool is_served_here =
      // Only the host that serves the range counts its trainers.
      replica_role_ == net::ReplicaRole::kPrimary ||
      (replica_role_ == net::ReplicaRole::kOnly && replica_ == 0);
  trainers_.need(is_served_here ? state_.trainers_needed() : 0, now_);
}

std::optional<std::string> RangeReplica::overdue(Clock::time_point now) const {
  const auto late = trainers_.overdue(is_backup() ? now - kPrimaryFirst : now);
  if (!late) {
    return std::nullopt;
  }
  const std::string limit = seconds_text(late->limit);
  if (!late->joined) {
    return "waited " + limit + " for " + trainers_.never_seen() + " to join";
  }
  const std::string name = describe(task_.cluster, task_.cluster.trainer(late->rank));
  return (late->rank == 0 ? "the chief, " + name + "," : name) + " has been gone for " + limit;
}

void RangeReplica::refuse_all(const net::Refusal& verdict) {
  verdict_ = verdict;
  for (const TrainerRecord& record : trainers_.records()) {
    // A trainer without a step channel has no request to answer; its own timeout ends it.
    if (record.step != 0) {
      out_.add(RefuseConnection{.id = record.step,
                                .request_id = record.waiting ? record.waiting->id() : 0,
                                .exit_code = verdict.exit_code,
                                .sentence = verdict.sentence});
    }
  }
  for (const Evaluator& each : evaluators_) {
    out_.add(RefuseConnection{.id = each.id,
                              .request_id = each.watch ? each.watch->request_id : 0,
                              .exit_code = verdict.exit_code,
                              .sentence = verdict.sentence});
  }
  // No step is made and no trainer is waited for after a verdict.
  end_.end();
}

}  // namespace disttf::roles
