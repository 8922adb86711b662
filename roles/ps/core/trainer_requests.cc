#include "roles/ps/core/trainer_requests.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "data/json/json_text.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

BodyPlan TrainerRequests::request(PeerConnection& from) {
  const FrameHeader& header = from.header;
  // Bodies are rejected here, before a handler that ignores them could lose its place in the
  // stream.
  if (header.body_size != 0) {
    return from.refuse(host_.out, kError, "this kind of frame has no body here");
  }
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
  return from.refuse(host_.out, kError,
                     "frame kind " + std::to_string(static_cast<int>(header.kind)) +
                         " is not allowed from this task now");
}

BodyPlan TrainerRequests::return_beat(const PeerConnection& from) {
  if (const auto error = net::Heartbeat{}.from_header(from.header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  host_.out.send(from.id, net::Heartbeat{}.to_header());
  return {};
}

template <typename Request>
BodyPlan TrainerRequests::ask(PeerConnection& from) {
  Request request;
  if (const auto error = request.from_header(from.header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  // No chief restores a state any more, so the request would wait forever.
  if (host_.is_finishing() &&
      !host_.state.shard()) {  // a ps that was restarted just when the run ended
    host_.answers.fence(from.id, request.request_id);
    return {};
  }
  if constexpr (std::is_same_v<Request, net::Pull>) {
    // A worker could otherwise end the run for all.
    if (request.concludes && from.rank != 0) {
      return from.refuse(host_.out, kError, "only the chief fetches the result");
    }
    const bool is_of_this_run = !host_.state.is_of_another(request.configuration);
    // A chief of another configuration must not end this run; it receives this run's configuration.
    if (request.concludes && host_.is_training() && is_of_this_run) {
      host_.conclude();
    }
    from.pulled = std::max(from.pulled, request.request_id);
  }
  if constexpr (std::is_same_v<Request, net::AwaitStep>) {
    // Elastic pushes are not answered, so this pull is where a trainer learns of a replaced state.
    if (host_.awaits_state() || request.generation != host_.state.generation()) {
      host_.answers.fence(from.id, request.request_id);
      return {};
    }
    // Elastic: the chief requests its snapshot shard with the pull, not with a push.
    if (from.rank == 0 && request.keep_snapshot) {
      host_.state.shard()->want_snapshot(request.push, request.step + 1);
    }
  }
  host_.answers.wait(from.rank, from.id, request, host_.now);
  return {};
}

BodyPlan TrainerRequests::goodbye(PeerConnection& from) {
  const FrameHeader& header = from.header;
  net::Goodbye request;
  if (const auto error = request.from_header(header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  const std::size_t rank = from.rank;
  if (host_.verdict) {  // the run has failed, so it has no regular end
    return from.refuse(host_.out, kLostPeers, host_.verdict->sentence);
  }
  // A repeated GOODBYE, whose answer was lost.
  if (host_.has_ended()) {
    host_.out.send(from.id, net::Ack{header.request_id}.to_header());
    return {};
  }
  if (host_.is_finishing()) {
    host_.end.goodbye(rank, host_.now);
  } else if (!host_.state.is_restored() || header.generation != host_.state.generation() ||
             !host_.state.may_be_result()) {
    // Its result is of a replaced state, or not of this ps's state.
    host_.answers.fence(from.id, header.request_id);
    return {};
  } else {
    TrainerRecord& record = host_.trainers[rank];
    if (rank != 0 && !record.done) {
      host_.out.info(from.peer + " said goodbye");
    }
    record.done = true;
    host_.end.goodbye(rank, host_.now);
    if (const RunConfig& config = host_.state.shard()->config();
        config.sync_replicas && !config.every_gradient_counts()) {
      host_.state.shard()->conclude();
    }
    host_.answers.answer_waiting(host_.now);
  }
  host_.answers.wait(rank, from.id, request, host_.now);
  host_.check_end();
  return {};
}

BodyPlan TrainerRequests::shutdown(PeerConnection& from) {
  if (from.rank != 0) {
    return from.refuse(host_.out, kError, "only the chief says that the run is over");
  }
  net::Shutdown request;
  if (const auto error = request.from_header(from.header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  if (host_.verdict) {
    return from.refuse(host_.out, kLostPeers, host_.verdict->sentence);
  }
  // Acknowledged also if the state here is not the result: the run is over all the same.
  host_.out.send(from.id, net::Ack{request.request_id}.to_header());
  // A GOODBYE after SHUTDOWN: step 4 of run_end.h.
  if (host_.is_finishing()) {
    return {};
  }
  // The result is of this generation. If every gradient counts, the result of any other generation
  // is the same.
  const net::Generation result = request.generation;
  const bool is_other =
      result != host_.state.generation() || (request.step != 0 && host_.state.is_restored() &&
                                             request.step != host_.state.shard()->step());
  if (!host_.state.is_restored() || !host_.state.may_be_result() ||
      (!host_.state.shard()->config().every_gradient_counts() && is_other)) {
    host_.state.drop_for(
        result);  // not restored yet, or rolled back since: the state belongs to no run
    host_.count_needed();
  }
  // From here on nothing is undone: a later chief finds the run over.
  host_.end.shut_down();
  if (host_.state.shard()) {
    host_.out.info("the run is over after step " + std::to_string(host_.state.shard()->step()));
  } else {
    host_.out.info("the run is over; this task holds nothing of it");
    host_.answers.fence_waiting();  // there is no state to answer with
  }
  host_.answers.answer_waiting(host_.now);
  host_.serve_evaluators();
  return {};
}

BodyPlan TrainerRequests::take_best(PeerConnection& from) {
  net::Best best;
  if (const auto error = best.from_header(from.header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  if (from.rank != 0) {
    return from.refuse(host_.out, kError, "only the chief judges evaluations");
  }
  // learn() keeps the newer of two, so a chief that has just started cannot undo its predecessor's
  // evaluation, and receives it with the answer.
  host_.state.learn({.step = best.step, .loss = best.loss});
  host_.backup.send_best();
  host_.out.send(from.id, net::Best{.request_id = best.request_id,
                                    .step = host_.state.best().step,
                                    .loss = host_.state.best().loss}
                              .to_header());
  return {};
}

// Peer discovery in a host group: a leader reports where it is found, and its members receive that
// for as long as the leader's step channel is open.
BodyPlan TrainerRequests::answer_peer_discovery(PeerConnection& from) {
  net::PeerDiscovery discovery;
  if (const auto error = discovery.from_header(from.header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  const std::size_t leader = net::host_group_of(host_.task.cluster, from.rank).first;
  TrainerRecord& record = host_.trainers[leader];
  // Only the leader's current step channel may set where it is found.
  if (leader == from.rank && record.step == from.id) {
    record.discovery = {
        .connection = from.id, .listener_name = discovery.listener_name, .token = discovery.token};
  }
  const TrainerRecord::Discovery& found = record.discovery;
  const bool is_there = found.connection != 0 && found.connection == record.step;
  host_.out.send(from.id, net::PeerDiscovery{.request_id = discovery.request_id,
                                             .listener_name = is_there ? found.listener_name : 0,
                                             .token = is_there ? found.token : 0}
                              .to_header());
  return {};
}

BodyPlan TrainerRequests::send_status(const PeerConnection& from) {
  net::GetStatus request;
  if (const auto error = request.from_header(from.header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  const std::string text = status();
  const auto bytes = std::as_bytes(std::span(text));
  host_.out.send(from.id, net::StatusReply{request.request_id}.to_header(),
                 {bytes.begin(), bytes.end()});
  return {};
}

std::string TrainerRequests::status() const {
  nlohmann::ordered_json out;
  out["task"] = net::to_string(host_.task.self);
  out["generation"] = net::number_of(host_.state.generation());
  if (host_.role != net::ReplicaRole::kOnly) {
    out["view"] = host_.view.number.count;
    out["has_backup"] = host_.backup.is_complete();
  }
  if (host_.state.shard()) {
    const ShardCounters& counters = host_.state.shard()->counters();
    out["step"] = host_.state.shard()->step();
    out["finished"] = host_.state.shard()->finished();
    if (host_.state.shard()->config().sync_replicas && !host_.state.shard()->finished()) {
      for (const std::size_t rank : host_.state.shard()->policy().missing()) {
        out["waiting_for"].push_back(net::to_string(host_.task.cluster.trainer(rank)));
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
