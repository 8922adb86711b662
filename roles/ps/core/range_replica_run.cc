#include <new>
#include <stdexcept>
#include <utility>

#include "roles/ps/core/range_replica.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

BodyPlan RangeReplica::candidate_header(PeerConnection& from) {
  if (from.header.kind == net::FrameKind::kPublish) {
    return publish_header(from);
  }
  if (from.header.kind == net::FrameKind::kHeartbeat && from.header.body_size == 0) {
    return return_beat(from);
  }
  if (from.header.kind == net::FrameKind::kShutdown && from.header.body_size == 0) {
    // Another ps has said that the run is over. The chief before it may have died before it had
    // notified this one.
    order_.learn(from.rank, from.hello.incarnation);
    let_in(from.id, now_);
    return shutdown(from);
  }
  return from.refuse(out_, kError, "a chief that joins a run has to publish first");
}

BodyPlan RangeReplica::publish_header(PeerConnection& from) {
  if (from.rank != 0 || from.header.body_size > net::kMaxConfigBodyBytes) {
    return from.refuse(out_, kError, "only the chief publishes a configuration, of at most 16 MiB");
  }
  if (const auto error = net::Publish{}.from_header(from.header)) {
    return from.refuse(out_, kError, error.message());
  }
  return from.into_growing_bytes(PeerConnection::Part::kPublish);
}

BodyPlan RangeReplica::publish_came(PeerConnection& from) {
  // The configuration is kept as text: chief, ps and backup compare these bytes.
  std::string json = from.take_text();
  try {
    const RunConfig config = config_to_begin(json);
    // An unchanged configuration is not an error: a chief that lost the answer publishes again.
    if (json != state_.config_json()) {
      if (!awaits_state()) {
        throw std::invalid_argument("a run with another configuration is under way here" +
                                    (state_.shard()
                                         ? ": " + changes(state_.shard()->config(), config)
                                         : std::string(", or has just ended")));
      }
      begin_run(config, std::move(json), from.id);
    }
  } catch (const std::invalid_argument& error) {
    return refuse_chief(from, kUsage, error.what());
  } catch (const Failure& failure) {  // less memory than the run takes
    return refuse_chief(from, static_cast<ExitCode>(failure.exit_code()), failure.what());
  } catch (const std::bad_alloc&) {
    return refuse_chief(from, kError,
                        describe(task_.cluster, task_.self) +
                            " does not have the memory for its range of the parameters, the "
                            "optimizer's state and one gradient of each trainer");
  }
  if (from.role == PeerConnection::Role::kCandidate) {
    order_.learn(from.rank, from.hello.incarnation);
  }
  out_.send(from.id, net::Ack{from.header.request_id}.to_header());
  return {};
}

// A refused chief leaves no trace, so that the right one may come next.
BodyPlan RangeReplica::refuse_chief(PeerConnection& from, ExitCode code, const std::string& why) {
  if (from.role != PeerConnection::Role::kCandidate) {  // else the present chief is registered
    trainers_.disown(from.rank);
  }
  return from.refuse(out_, code, why);
}

// For a chief that has connected last. A host that holds nothing may have received views from an
// earlier chief, which another ps has refused. Those views do not bind this host.
RunConfig RangeReplica::config_to_begin(const std::string& json) {
  const bool has_views = replica_role_ != net::ReplicaRole::kOnly;
  const bool may_leave = is_empty() && leave_views_;
  // nullopt: the views may still be dropped, so either number of replicas is valid.
  RunConfig config =
      state_.checked_config(json, has_views && may_leave ? std::nullopt : std::optional(has_views));
  if (may_leave && config.ps_replicas == 1 && !leave_views_() && has_views) {
    return state_.checked_config(json, has_views);  // throws
  }
  return config;
}

std::optional<RangeReplica::Beginning> RangeReplica::run_to_begin(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || state_.shard()) {
    return std::nullopt;
  }
  const PeerConnection& from = found->second;
  const bool is_published = from.part == PeerConnection::Part::kPublish && awaits_state();
  if ((!is_published && from.part != PeerConnection::Part::kConfig) || !from.has_all_bytes()) {
    return std::nullopt;
  }
  std::string json(reinterpret_cast<const char*>(from.bytes.data()), from.bytes.size());
  try {
    const bool has_views = replica_role_ != net::ReplicaRole::kOnly;
    // As config_to_begin(), which also drops the views.
    const bool may_leave = is_empty() && leave_views_;
    const RunConfig config = state_.checked_config(
        json, has_views && may_leave ? std::nullopt : std::optional(has_views));
    return Beginning{.json = std::move(json), .config = config};
  } catch (const std::invalid_argument&) {
    return std::nullopt;  // body() refuses the configuration
  }
}

void RangeReplica::begin_run(const RunConfig& config, std::string json, ConnectionId chief) {
  // Only a replaced shard has replies that borrow from it.
  for (const TrainerRecord& record : trainers_.records()) {
    // The chief's channel stays open: it has just published, and waits for the answer.
    if (state_.shard() && record.step != chief) {
      out_.close(record.step);  // a reply may still borrow the old shard's memory
    }
  }
  if (state_.shard()) {
    close_evaluators();  // they request the configuration when they open a channel
  }
  try {
    state_.begin_run(config, std::move(json));
  } catch (...) {
    // The old shard is gone although there is no new one.
    count_needed();
    throw;
  }
  // A new shard counts no trainer as joined; those that are connected do not connect again.
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (trainers_[rank].present()) {
      state_.shard()->policy().join(rank);
    }
  }
  count_needed();
}

BodyPlan RangeReplica::restore_header(PeerConnection& from) {
  const net::FrameHeader& header = from.header;
  net::Restore restore;
  if (const auto error = restore.from_header(header)) {
    return from.refuse(out_, kError, error.message());
  }
  if (from.rank != 0 || !state_.shard() || is_finishing()) {
    return from.refuse(
        out_, kError,
        "a state is restored by the chief, after it has published and before the end");
  }
  // Initial parameters come without the optimizer's tensors.
  const bool parameters_only = header.body_size == state_.shard()->range().size() * sizeof(float);
  if (restore.range_begin != state_.shard()->range().begin ||
      (!parameters_only &&
       header.body_size != state_.shard()->storage().state_size() * sizeof(float))) {
    return from.refuse(out_, kError, state_.fault_in(header).value_or("not a state"));
  }
  // This restore is a repeat, or was overtaken by a newer one.
  // Generations only grow. A repeated RESTORE must not roll back steps that were made since.
  if (restore.generation <= state_.generation()) {
    if (header.body_size == 0) {
      answers_.fence(from.id, header.request_id);
      return {};
    }
    return from.discard(PeerConnection::Part::kStaleRestore);
  }
  state_.invalidate();  // the restore overwrites the current state
  // The backup holds the old state. It is filled anew once this restore is complete.
  lose_backup();
  close_overtaken();
  // Keeps the shard alive if another run replaces it while the body arrives.
  from.shard = state_.shard();
  from.places.clear();
  for (const std::span<float> place : state_.begin_restore(parameters_only)) {
    from.places.push_back(std::as_writable_bytes(place));
  }
  return from.into(PeerConnection::Part::kRestore);
}

// If every gradient counts, a restore writes into the buffer of the previous step's parameters. A
// reply that is still being sent is therefore kept only if it carries the newest parameters. Two
// kinds are closed: a reply of an earlier state, and a reply of the previous step. (The latter goes
// to a trainer that had pushed, was lost, and pulled on a new connection when another trainer's
// push completed the next step.) In the other modes a reply is a copy.
void RangeReplica::close_overtaken() {
  const bool borrows = state_.shard()->config().every_gradient_counts();
  for (const TrainerRecord& record : trainers_.records()) {
    if (borrows && record.answered &&
        (record.answered->restores < state_.restores() ||
         record.answered->step < state_.shard()->step())) {
      out_.close(record.step);
    }
  }
}

BodyPlan RangeReplica::restore_came(PeerConnection& from) {
  // The body was received into that shard, so only it can be complete now.
  const std::shared_ptr<Shard> shard = std::move(from.shard);
  if (shard != state_.shard()) {
    return {.next = BodyPlan::Next::kStop};  // a newer chief has begun another run meanwhile
  }
  const net::FrameHeader& header = from.header;
  state_.finish_restore(header.step, header.generation);
  answers_.share_step();
  // Elastic runs do not expect all: they go on with the trainers that are present.
  end_.begin_steps(/*expects_all=*/!shard->config().elastic());
  if ((header.flags & net::kFlagFinished) != 0) {
    conclude();
  }
  trainers_.need(0, now_);  // time with too few trainers before the restore does not count
  count_needed();
  send_report();
  out_.info("holds parameters [" + std::to_string(shard->range().begin) + ", " +
            std::to_string(shard->range().end) + ") at step " + std::to_string(header.step) +
            ", generation " + std::to_string(net::number_of(state_.generation())));
  out_.send(from.id, net::Ack{header.request_id}.to_header());
  // Rolled back: trainers that were done train again, and requests about steps of the old state are
  // fenced.
  trainers_.none_is_done();
  answers_.fence_waiting();
  answers_.answer_waiting(now_);
  serve_evaluators();
  return {};
}

}  // namespace disttf::roles
