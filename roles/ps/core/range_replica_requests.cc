#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "data/json/json_text.h"
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

BodyPlan RangeReplica::trainer_header(PeerConnection& from, const net::BodyInPlace& in_place) {
  switch (from.header.kind) {
    case FrameKind::kPushPull:
    case FrameKind::kPush:
      return took_push(pushes_.header(from, in_place, now_));
    case FrameKind::kPublish:
      return publish_header(from);
    case FrameKind::kRestore:
      return restore_header(from);
    default:
      break;
  }
  // Further bodies are rejected here, before a handler that ignores them could lose its place in
  // the stream.
  if (from.header.body_size != 0) {
    return from.refuse(out_, kError, "this kind of frame has no body here");
  }
  return bodiless(from);
}

BodyPlan RangeReplica::bodiless(PeerConnection& from) {
  const FrameHeader& header = from.header;
  switch (header.kind) {
    case FrameKind::kHeartbeat:
      return return_beat(from);
    case FrameKind::kGetConfig:
      return ask<net::GetConfig>(from);
    case FrameKind::kPull:
      return (header.flags & net::kFlagNext) != 0 ? ask<net::AwaitStep>(from)
                                                  : ask<net::Pull>(from);
    case FrameKind::kGoodbye:
      return goodbye(from);
    case FrameKind::kShutdown:
      return shutdown(from);
    case FrameKind::kStatus:
      return send_status(from);
    case FrameKind::kBest:
      return take_best(from);
    case FrameKind::kPeerDiscovery:
      return answer_peer_discovery(from);
    default:
      break;
  }
  return from.refuse(out_, kError,
                     "frame kind " + std::to_string(static_cast<int>(header.kind)) +
                         " is not allowed from this task now");
}

// The trainer has this host's answer, and waits for other ps.
BodyPlan RangeReplica::return_beat(const PeerConnection& from) {
  if (const auto error = net::Heartbeat{}.from_header(from.header)) {
    return from.refuse(out_, kError, error.message());
  }
  out_.send(from.id, net::Heartbeat{}.to_header());
  return {};
}

BodyPlan RangeReplica::send_status(const PeerConnection& from) {
  net::GetStatus request;
  if (const auto error = request.from_header(from.header)) {
    return from.refuse(out_, kError, error.message());
  }
  const std::string text = status();
  const auto bytes = std::as_bytes(std::span(text));
  out_.send(from.id, net::StatusReply{request.request_id}.to_header(),
            {bytes.begin(), bytes.end()});
  return {};
}

template <typename Request>
BodyPlan RangeReplica::ask(PeerConnection& from) {
  Request request;
  if (const auto error = request.from_header(from.header)) {
    return from.refuse(out_, kError, error.message());
  }
  // No chief restores a state any more, so the request would wait forever.
  if (is_finishing() && !state_.shard()) {  // a ps that was restarted just when the run ended
    answers_.fence(from.id, request.request_id);
    return {};
  }
  if constexpr (std::is_same_v<Request, net::Pull>) {
    // A worker could otherwise end the run for all.
    if (request.concludes && from.rank != 0) {
      return from.refuse(out_, kError, "only the chief fetches the result");
    }
    const bool is_of_this_run = !state_.is_of_another(request.configuration);
    // A chief of another configuration must not end this run; it receives this run's configuration.
    if (request.concludes && is_training() && is_of_this_run) {
      conclude();
    }
    from.pulled = std::max(from.pulled, request.request_id);
  }
  if constexpr (std::is_same_v<Request, net::AwaitStep>) {
    // Elastic pushes are not answered, so this pull is where a trainer learns of a replaced state.
    if (awaits_state() || request.generation != state_.generation()) {
      answers_.fence(from.id, request.request_id);
      return {};
    }
    // Elastic: the chief requests its snapshot shard with the pull, not with a push.
    if (from.rank == 0 && request.keep_snapshot) {
      state_.shard()->want_snapshot(request.push, request.step + 1);
    }
  }
  answers_.wait(from.rank, from.id, request, now_);
  return {};
}

// If every gradient counts, the current step becomes the last one, and the run ends as after its
// regular last step: waiting trainers are answered once the other host has acknowledged. In the
// other modes trainers that wait for a step are answered without it (RunEnd::no_more_steps()).
void RangeReplica::conclude() {
  // Only the first time is an entry of the log: a chief repeats its pull after a lost link.
  const bool is_news = !state_.shard()->is_concluded() && !state_.shard()->finished();
  state_.shard()->conclude();
  if (is_news) {
    backup_.conclude();
  }
  stop_steps();
}

void RangeReplica::stop_steps() {
  if (!state_.shard()->config().every_gradient_counts()) {
    end_.conclude();
  }
  count_needed();
}

BodyPlan RangeReplica::take_best(PeerConnection& from) {
  net::Best best;
  if (const auto error = best.from_header(from.header)) {
    return from.refuse(out_, kError, error.message());
  }
  if (from.rank != 0) {
    return from.refuse(out_, kError, "only the chief judges evaluations");
  }
  // learn() keeps the newer of two, so a chief that has just started cannot undo its predecessor's
  // evaluation, and receives it with the answer.
  state_.learn({.step = best.step, .loss = best.loss});
  backup_.send_best();
  out_.send(from.id, net::Best{.request_id = best.request_id,
                               .step = state_.best().step,
                               .loss = state_.best().loss}
                         .to_header());
  return {};
}

// Peer discovery in a host group: a leader reports where it is found, and its members receive that
// for as long as the leader's step channel is open.
BodyPlan RangeReplica::answer_peer_discovery(PeerConnection& from) {
  net::PeerDiscovery discovery;
  if (const auto error = discovery.from_header(from.header)) {
    return from.refuse(out_, kError, error.message());
  }
  const std::size_t leader = net::host_group_of(task_.cluster, from.rank).first;
  TrainerRecord& record = trainers_[leader];
  // Only the leader's current step channel may set where it is found.
  if (leader == from.rank && record.step == from.id) {
    record.discovery = {
        .connection = from.id, .listener_name = discovery.listener_name, .token = discovery.token};
  }
  const TrainerRecord::Discovery& found = record.discovery;
  const bool is_there = found.connection != 0 && found.connection == record.step;
  out_.send(from.id, net::PeerDiscovery{.request_id = discovery.request_id,
                                        .listener_name = is_there ? found.listener_name : 0,
                                        .token = is_there ? found.token : 0}
                         .to_header());
  return {};
}

PsMetrics RangeReplica::take_metrics() {
  PsMetrics metrics{.task = task_.self,
                    .process = {},
                    .generation = net::number_of(state_.generation()),
                    .replica_role = {},
                    .present = {},
                    .samples = times_.take(),
                    .traced = times_.take_traced(most_traced_at_once(trainers_.records().size()))};
  metrics.has_more_traced = !times_.all_traced_taken();
  if (replica_role_ != net::ReplicaRole::kOnly) {
    metrics.replica_role = is_backup() ? "backup" : "primary";
    metrics.has_backup = backup_.is_complete();
    metrics.view = view_.number.count;
    metrics.lag_updates = backup_.lag();
  }
  for (const TrainerRecord& record : trainers_.records()) {
    metrics.present.push_back(record.present());
  }
  if (const std::shared_ptr<Shard>& shard = state_.shard()) {
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

std::string RangeReplica::status() const {
  nlohmann::ordered_json out;
  out["task"] = net::to_string(task_.self);
  out["generation"] = net::number_of(state_.generation());
  if (replica_role_ != net::ReplicaRole::kOnly) {
    out["view"] = view_.number.count;
    out["has_backup"] = backup_.is_complete();
  }
  if (state_.shard()) {
    const ShardCounters& counters = state_.shard()->counters();
    out["step"] = state_.shard()->step();
    out["finished"] = state_.shard()->finished();
    if (state_.shard()->config().sync_replicas && !state_.shard()->finished()) {
      for (const std::size_t rank : state_.shard()->policy().missing()) {
        out["waiting_for"].push_back(net::to_string(task_.cluster.trainer(rank)));
      }
    }
    out["pushes"] = counters.pushes;
    out["applied"] = counters.applied;
    out["repeats"] = counters.repeats;
    out["dropped"] = counters.dropped;
    out["bad"] = counters.bad;
    out["staleness_sum"] = counters.staleness_sum;
    out["staleness_max"] = counters.staleness_max;
  }
  return data::json_text(out);
}

}  // namespace disttf::roles
