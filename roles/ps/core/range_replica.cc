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

// ---------------------------------------------------------------------------------- connections

std::variant<net::Welcome, net::Refusal> RangeReplica::welcome(const net::Hello& hello) const {
  net::Welcome welcome{.incarnation = host_.state.lineage(),
                       .state = net::ShardState::kEmpty,
                       .replica_role = host_.role,
                       .generation = host_.state.generation(),
                       .step = host_.state.shard() ? host_.state.shard()->step() : 0,
                       .heartbeat_ms = static_cast<std::uint32_t>(kHeartbeatInterval.count())};
  if (host_.is_finishing()) {
    welcome.state = net::ShardState::kFinished;
  } else if (host_.is_training()) {
    welcome.state = net::ShardState::kReady;
  }
  // A probe is answered whatever its sender is.
  if (hello.purpose == net::ChannelPurpose::kProbe) {
    return welcome;
  }
  if (hello.purpose == net::ChannelPurpose::kReplica) {
    if (hello.from != host_.other_host() || host_.trains_without_replicas()) {
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
                                    describe(host_.task.cluster, host_.task.self)};
  }
  const bool is_chief = host_.task.cluster.rank_of(hello.from) == 0;
  if (hello.purpose == net::ChannelPurpose::kState && !is_chief) {
    return net::Refusal{.exit_code = kUsage, .sentence = "only the chief collects the state"};
  }
  if (hello.purpose == net::ChannelPurpose::kView &&
      (!is_chief || host_.trains_without_replicas())) {
    return net::Refusal{.exit_code = kUsage,
                        .sentence = "only the chief makes views, of a run that has replicas"};
  }
  return welcome;
}

bool RangeReplica::connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                             Clock::time_point now, bool is_candidate) {
  host_.now = now;
  PeerConnection connection(id, Role::kTrainer, peer, hello);
  switch (hello.purpose) {
    case net::ChannelPurpose::kView:
      host_.out.close(host_.view_channel);  // of a lost chief
      host_.view_channel = id;
      connection.role = Role::kView;
      host_.send_report();
      break;
    case net::ChannelPurpose::kReplica:
      connection.role = Role::kPrimary;
      break;
    case net::ChannelPurpose::kState:
      host_.evaluators.connected(id, hello.incarnation);
      connection.role = Role::kEvaluator;
      break;
    default:
      connection.rank = host_.task.cluster.rank_of(hello.from);
      if (host_.role == net::ReplicaRole::kBackup) {
        // Not registered: a trainer that asks a backup counts as a redirected client only.
        host_.trainers.redirected(connection.rank,
                                  now);  // WELCOME has redirected it to the other host
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
    std::string& name = host_.trainers[trainer.rank].name;
    if (name.empty()) {
      host_.out.info(trainer.peer + " joined");
    }
    name = trainer.peer;
    host_.send_report();  // the report may have listed it as unreachable
    if (host_.state.shard()) {
      host_.state.shard()->policy().join(trainer.rank);
    }
  }
}

void RangeReplica::let_in(ConnectionId id, Clock::time_point now) {
  host_.now = now;
  PeerConnection& chief = connections_.at(id);
  if (std::exchange(chief.role, Role::kTrainer) == Role::kCandidate) {
    join(chief);
  }
}

// Runs for as long as the other host is connected.
void RangeReplica::reached(ConnectionId id, Clock::time_point now) {
  host_.now = now;
  connections_.emplace(id, id, PeerConnection::Role::kBackup,
                       describe(host_.task.cluster, host_.other_host()), net::Hello{});
  host_.backup.fill(id, host_.view.number);
}

BodyPlan RangeReplica::header(ConnectionId id, const FrameHeader& header, Clock::time_point now,
                              const net::BodyInPlace& in_place) {
  host_.now = now;
  PeerConnection& from = connections_.at(id);
  // Kept for body(), which is called when the whole body has arrived.
  from.header = header;
  switch (from.role) {
    case Role::kView:
      return roles_.view_header(from);
    case Role::kPrimary:
      return roles_.primary_header(from, in_place);
    case Role::kBackup:
      return roles_.backup_header(from);
    case Role::kEvaluator:
      return evaluator_header(from);
    case Role::kCandidate:
      return candidate_header(from);
    case Role::kTrainer:
      break;
  }
  if (header.kind == FrameKind::kPushPull || header.kind == FrameKind::kPush) {
    return pushes_.header(id, header, now, in_place);
  }
  return trainer_header(from);
}

BodyPlan RangeReplica::trainer_header(PeerConnection& from) {
  host_.received(from);
  switch (from.header.kind) {
    case FrameKind::kPublish:
      return start_.publish_header(from);
    case FrameKind::kRestore:
      return start_.restore_header(from);
    default:
      return requests_.request(from);
  }
}

BodyPlan RangeReplica::evaluator_header(PeerConnection& from) {
  // Before a ps holds a state, its configuration may be that of a chief that another ps refuses.
  const bool is_known =
      (host_.holds_state() || host_.is_finishing()) && !host_.state.config_json().empty();
  const BodyPlan plan = host_.evaluators.header(
      from, is_known ? host_.state.shared_config() : nullptr, host_.is_backup());
  host_.serve_evaluators();
  return plan;
}

BodyPlan RangeReplica::candidate_header(PeerConnection& from) {
  if (from.header.kind == net::FrameKind::kPublish) {
    return start_.publish_header(from);
  }
  if (from.header.kind == net::FrameKind::kHeartbeat && from.header.body_size == 0) {
    return requests_.return_beat(from);
  }
  if (from.header.kind == net::FrameKind::kShutdown && from.header.body_size == 0) {
    // Another ps has said that the run is over. The chief before it may have died before it had
    // notified this one.
    host_.order.learn(from.rank, from.hello.incarnation);
    let_in(from.id, host_.now);
    return requests_.shutdown(from);
  }
  return from.refuse(host_.out, kError, "a chief that joins a run has to publish first");
}

BodyPlan RangeReplica::body(ConnectionId id, Clock::time_point now) {
  host_.now = now;
  PeerConnection& from = connections_.at(id);
  if (from.is_reading_gradient()) {
    return pushes_.body(id, now);
  }
  // Taken out first: a handler may ask for another part of the same body.
  const PeerConnection::Part part = std::exchange(from.part, PeerConnection::Part::kNone);
  const bool is_config =
      part == PeerConnection::Part::kPublish || part == PeerConnection::Part::kConfig;
  if (is_config && !from.has_all_bytes()) {
    return from.grow_bytes(part);
  }
  switch (part) {
    case PeerConnection::Part::kPublish:
      return start_.publish_came(from);
    case PeerConnection::Part::kRestore:
      return start_.restore_came(from);
    case PeerConnection::Part::kStaleRestore:
      host_.answers.fence(from.id, from.header.request_id);
      return {};
    case PeerConnection::Part::kView:
      return roles_.view_came(from);
    case PeerConnection::Part::kConfig:
      return roles_.config_came(from);
    case PeerConnection::Part::kOfPrimary:
      return roles_.part_came(from);
    default:
      return {};
  }
}

std::optional<RunStart::Beginning> RangeReplica::run_to_begin(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? std::nullopt : start_.run_to_begin(found->second);
}

void RangeReplica::gave(ConnectionId to, ReplicationLog::Index entry, Clock::time_point now) {
  host_.now = now;
  host_.backup.gave(to, entry);
  host_.answers.answer_waiting(host_.now);
}

void RangeReplica::closed(ConnectionId id, Clock::time_point now) {
  host_.now = now;
  const auto found = connections_.find(id);
  const PeerConnection from = std::move(found->second);
  connections_.erase(found);
  switch (from.role) {
    case Role::kView:
      if (host_.view_channel == id) {
        host_.view_channel = 0;
        host_.views_lost = now;
      }
      return;
    case Role::kPrimary:
      if (host_.primary == id) {
        host_.out.close(id);
        host_.primary = 0;
      }
      return;
    case Role::kBackup:
      if (host_.backup.connection() == id) {
        if (!host_.verdict) {
          host_.out.warn(from.peer + " and its copy of range " +
                         std::to_string(host_.state.index()) + " were lost");
        }
        host_.lose_backup();
      }
      return;
    case Role::kEvaluator:
      host_.evaluators.closed(id);
      return;
    case Role::kCandidate:
      return;
    case Role::kTrainer:
      break;
  }
  // detach() returns false if the trainer is still present.
  if (!host_.trainers.detach(from.rank, id, now)) {
    return;
  }
  trainer_left(from.rank);
  log_lost(from.rank);
  host_.check_end();
}

// Logs the loss once the trainer's process has no connection left.
void RangeReplica::log_lost(std::size_t rank) {
  TrainerRecord& record = host_.trainers[rank];
  if (record.alive() || record.name.empty()) {
    return;
  }
  const std::string name = std::exchange(record.name, {});
  // The loss of a trainer that has finished, or of a failed run, is not worth a warning.
  if (!record.done && !host_.verdict) {
    host_.out.warn(name + " was lost");
  }
}

void RangeReplica::attach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now) {
  host_.now = now;
  attach(id, hello);
}

bool RangeReplica::attach(ConnectionId id, const net::Hello& hello) {
  const std::size_t rank = host_.task.cluster.rank_of(hello.from);
  const TrainerRecord& record = host_.trainers[rank];
  if (rank == 0 && (!record.alive() || record.incarnation != hello.incarnation)) {
    host_.views_lost = host_.now;  // its view channel may open a moment later
  }
  // Compared before and after: a new process closes the channels of the older one in attach().
  const bool was_present = record.present();
  const bool is_new = host_.trainers.attach(rank, id, hello, host_.now, host_.out);
  if (MicroBatchScheduler* const scheduler = host_.state.scheduler();
      scheduler != nullptr && hello.purpose == net::ChannelPurpose::kStep) {
    scheduler->forget(rank);
  }
  if (was_present && (is_new || !record.present())) {
    trainer_left(rank);  // the previous process
  }
  host_.count_needed();
  return is_new;
}

void RangeReplica::trainer_left(std::size_t rank) {
  host_.count_needed();
  if (host_.state.shard()) {
    host_.state.shard()->policy().leave(rank);
    if (MicroBatchScheduler* const scheduler = host_.state.scheduler()) {
      scheduler->forget(rank);
    }
    host_.answers.answer_after(
        0, host_.now);                 // the chief may wait for it; async: it may be the slowest
    host_.answers.schedule_missing();  // elastic: it may have been the only one that computed
  }
}

std::optional<std::string> RangeReplica::record_heartbeat(const net::Hello& hello,
                                                          net::Generation generation,
                                                          Clock::time_point now) {
  TrainerRecord& record = host_.trainers[host_.task.cluster.rank_of(hello.from)];
  record.last_received = now;
  // Trainers name a generation only once every ps holds it. If this ps does not, another process
  // has taken its place. Only a trainer that is registered here is trusted: its incarnation is a
  // secret between the two.
  if (!host_.is_training() || generation <= host_.state.generation() ||
      hello.incarnation != record.incarnation) {
    return std::nullopt;
  }
  const std::uint64_t theirs = net::number_of(generation);
  const std::uint64_t ours = net::number_of(host_.state.generation());
  return "was replaced while it was silent: the run is in generation " + std::to_string(theirs) +
         (theirs > ours ? "" : " of a newer chief") + ", this task holds generation " +
         std::to_string(ours);
}

void RangeReplica::detach_control(ConnectionId id, const net::Hello& hello, Clock::time_point now) {
  host_.now = now;
  host_.trainers.detach(host_.task.cluster.rank_of(hello.from), id, now);
  log_lost(host_.task.cluster.rank_of(hello.from));
  host_.check_end();
}

// ------------------------------------------------------------------------------------------ time

void RangeReplica::forgive(Clock::duration missed, Clock::time_point now) {
  host_.trainers.forgive(now, missed);
  host_.end.forgive(missed, now);
  host_.views_lost = std::min(host_.views_lost + missed, now);
}

void RangeReplica::close_timed_out(Clock::time_point now) {
  host_.now = now;
  host_.trainers.close_timed_out(now, host_.out);
  // A connected chief sends views to every host. If this one receives none, the chief sends them to
  // another process in this host's place, and a trainer whose answer needs a view would wait here
  // forever.
  const bool is_passed_over = host_.backup.needs_acks() && !host_.backup.is_complete() &&
                              host_.view_channel == 0 && host_.trainers[0].alive() &&
                              now - host_.views_lost >= host_.task.timeouts.heartbeat_timeout;
  if (!is_passed_over || host_.is_finishing()) {
    return;
  }
  host_.out.warn("range " + std::to_string(host_.state.index()) + ": no view from the chief for " +
                 seconds_text(host_.task.timeouts.heartbeat_timeout) +
                 "; closing trainers' connections, so that they try another host");
  host_.trainers.close_all(host_.out);
  host_.views_lost = now;  // if this host was not replaced, they and the chief come back
}

void RangeReplica::send_heartbeats(Clock::time_point now) {
  host_.now = now;
  for (const TrainerRecord& record : host_.trainers.records()) {
    if (record.waiting) {
      host_.out.send(record.waiting->connection,
                     net::Heartbeat{.request_id = record.waiting->id()}.to_header());
    }
  }
  host_.evaluators.send_heartbeats();
  host_.backup.send_heartbeat();
  if (host_.primary != 0) {
    host_.out.send(host_.primary, net::Heartbeat{}.to_header());
  }
  host_.send_report();
}

void RangeReplica::check_end(Clock::time_point now) {
  host_.now = now;
  host_.check_end();
}

std::optional<std::string> RangeReplica::overdue(Clock::time_point now) const {
  const auto late = host_.trainers.overdue(host_.is_backup() ? now - kPrimaryFirst : now);
  if (!late) {
    return std::nullopt;
  }
  const std::string limit = seconds_text(late->limit);
  if (!late->joined) {
    return "waited " + limit + " for " + host_.trainers.never_seen() + " to join";
  }
  const std::string name = describe(host_.task.cluster, host_.task.cluster.trainer(late->rank));
  return (late->rank == 0 ? "the chief, " + name + "," : name) + " has been gone for " + limit;
}

void RangeReplica::end_now(Clock::time_point now) {
  host_.now = now;
  host_.finish(host_.trainers[0].step);
}

void RangeReplica::refuse_all(const net::Refusal& verdict) {
  host_.verdict = verdict;
  for (const TrainerRecord& record : host_.trainers.records()) {
    // A trainer without a step channel has no request to answer; its own timeout ends it.
    if (record.step != 0) {
      host_.out.add(RefuseConnection{.id = record.step,
                                     .request_id = record.waiting ? record.waiting->id() : 0,
                                     .exit_code = verdict.exit_code,
                                     .sentence = verdict.sentence});
    }
  }
  host_.evaluators.refuse(verdict);
  // No step is made and no trainer is waited for after a verdict.
  host_.end.end();
}

void RangeReplica::lose_state(Clock::time_point now) {
  host_.now = now;
  roles_.lose_state();
}

void RangeReplica::leave_views(Clock::time_point now) {
  host_.now = now;
  roles_.leave_views();
}

PsMetrics RangeReplica::take_metrics() {
  PsMetrics metrics{
      .task = host_.task.self,
      .process = {},
      .generation = net::number_of(host_.state.generation()),
      .replica_role = {},
      .present = {},
      .samples = host_.times.take(),
      .traced = host_.times.take_traced(most_traced_at_once(host_.trainers.records().size()))};
  metrics.has_more_traced = !host_.times.all_traced_taken();
  if (host_.role != net::ReplicaRole::kOnly) {
    metrics.replica_role = host_.is_backup() ? "backup" : "primary";
    metrics.has_backup = host_.backup.is_complete();
    metrics.view = host_.view.number.count;
    metrics.lag_updates = host_.backup.lag();
  }
  for (const TrainerRecord& record : host_.trainers.records()) {
    metrics.present.push_back(record.present());
  }
  if (const std::shared_ptr<Shard>& shard = host_.state.shard()) {
    const ShardCounters& counters = shard->counters();
    metrics.step = shard->step();
    metrics.range_begin = shard->range().begin;
    metrics.range_end = shard->range().end;
    metrics.pushes = counters.pushes;
    metrics.applied = counters.applied;
    metrics.repeats = counters.repeats;
    metrics.dropped = counters.dropped;
    metrics.staleness_sum = counters.staleness_sum;
  }
  return metrics;
}

}  // namespace disttf::roles
