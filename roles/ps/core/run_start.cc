#include "roles/ps/core/run_start.h"

#include <new>
#include <stdexcept>

#include "run/run_config.h"

namespace disttf::roles {

BodyPlan RunStart::publish_header(PeerConnection& from) {
  if (from.rank != 0 || from.header.body_size > net::kMaxConfigBodyBytes) {
    return from.refuse(host_.out, kError,
                       "only the chief publishes a configuration, of at most 16 MiB");
  }
  if (const auto error = net::Publish{}.from_header(from.header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  return from.into_growing_bytes(PeerConnection::Part::kPublish);
}

BodyPlan RunStart::publish_came(PeerConnection& from) {
  // The configuration is kept as text: chief, ps and backup compare these bytes.
  std::string json = from.take_text();
  try {
    const RunConfig config = config_to_begin(json);
    // An unchanged configuration is not an error: a chief that lost the answer publishes again.
    if (json != host_.state.config_json()) {
      if (!host_.awaits_state()) {
        throw std::invalid_argument("a run with another configuration is under way here" +
                                    (host_.state.shard()
                                         ? ": " + changes(host_.state.shard()->config(), config)
                                         : std::string(", or has just ended")));
      }
      host_.begin_run(config, std::move(json), from.id);
    }
  } catch (const std::invalid_argument& error) {
    return refuse_chief(from, kUsage, error.what());
  } catch (const Failure& failure) {  // less memory than the run takes
    return refuse_chief(from, static_cast<ExitCode>(failure.exit_code()), failure.what());
  } catch (const std::bad_alloc&) {
    return refuse_chief(from, kError,
                        describe(host_.task.cluster, host_.task.self) +
                            " does not have the memory for its range of the parameters, the "
                            "optimizer's state and one gradient of each trainer");
  }
  if (from.role == PeerConnection::Role::kCandidate) {
    host_.order.learn(from.rank, from.hello.incarnation);
  }
  host_.out.send(from.id, net::Ack{from.header.request_id}.to_header());
  return {};
}

// A refused chief leaves no trace, so that the right one may come next.
BodyPlan RunStart::refuse_chief(PeerConnection& from, ExitCode code, const std::string& why) {
  if (from.role != PeerConnection::Role::kCandidate) {  // else the present chief is registered
    host_.trainers.disown(from.rank);
  }
  return from.refuse(host_.out, code, why);
}

// For a chief that has connected last. A host that holds nothing may have received views from an
// earlier chief, which another ps has refused. Those views do not bind this host.
RunConfig RunStart::config_to_begin(const std::string& json) {
  RunConfig config = host_.state.checked_config(json, is_replicated());
  const bool has_views = host_.role != net::ReplicaRole::kOnly;
  const bool may_leave = host_.is_empty() && leave_views_;
  if (may_leave && config.ps_replicas == 1 && !leave_views_() && has_views) {
    return host_.state.checked_config(json, has_views);  // throws
  }
  return config;
}

std::optional<bool> RunStart::is_replicated() const {
  const bool has_views = host_.role != net::ReplicaRole::kOnly;
  return has_views && host_.is_empty() && leave_views_ ? std::nullopt : std::optional(has_views);
}

std::optional<RunStart::Beginning> RunStart::run_to_begin(const PeerConnection& from) const {
  const bool is_published = from.part == PeerConnection::Part::kPublish && host_.awaits_state();
  if (host_.state.shard() || !from.has_all_bytes() ||
      (!is_published && from.part != PeerConnection::Part::kConfig)) {
    return std::nullopt;
  }
  std::string json(reinterpret_cast<const char*>(from.bytes.data()), from.bytes.size());
  try {
    // As config_to_begin(), which also drops the views.
    const RunConfig config = host_.state.checked_config(json, is_replicated());
    return Beginning{.json = std::move(json), .config = config};
  } catch (const std::invalid_argument&) {
    return std::nullopt;  // publish_came() refuses the configuration
  }
}

BodyPlan RunStart::restore_header(PeerConnection& from) {
  const net::FrameHeader& header = from.header;
  net::Restore restore;
  if (const auto error = restore.from_header(header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  if (from.rank != 0 || !host_.state.shard() || host_.is_finishing()) {
    return from.refuse(
        host_.out, kError,
        "a state is restored by the chief, after it has published and before the end");
  }
  // Initial parameters come without the optimizer's tensors.
  const bool parameters_only =
      header.body_size == host_.state.shard()->range().size() * sizeof(float);
  if (restore.range_begin != host_.state.shard()->range().begin ||
      (!parameters_only &&
       header.body_size != host_.state.shard()->storage().state_size() * sizeof(float))) {
    return from.refuse(host_.out, kError, host_.state.fault_in(header).value_or("not a state"));
  }
  // This restore is a repeat, or was overtaken by a newer one.
  // Generations only grow. A repeated RESTORE must not roll back steps that were made since.
  if (restore.generation <= host_.state.generation()) {
    if (header.body_size == 0) {
      host_.answers.fence(from.id, header.request_id);
      return {};
    }
    return from.discard(PeerConnection::Part::kStaleRestore);
  }
  host_.state.invalidate();  // the restore overwrites the current state
  // The backup holds the old state. It is filled anew once this restore is complete.
  host_.lose_backup();
  close_overtaken();
  // Keeps the shard alive if another run replaces it while the body arrives.
  from.shard = host_.state.shard();
  from.places.clear();
  for (const std::span<float> place : host_.state.begin_restore(parameters_only)) {
    from.places.push_back(std::as_writable_bytes(place));
  }
  return from.into(PeerConnection::Part::kRestore);
}

// If every gradient counts, a restore writes into the buffer of the previous step's parameters. A
// reply that is still being sent is therefore kept only if it carries the newest parameters. Two
// kinds are closed: a reply of an earlier state, and a reply of the previous step. (The latter goes
// to a trainer that had pushed, was lost, and pulled on a new connection when another trainer's
// push completed the next step.) In the other modes a reply is a copy.
void RunStart::close_overtaken() {
  const bool borrows = host_.state.shard()->config().every_gradient_counts();
  for (const TrainerRecord& record : host_.trainers.records()) {
    if (borrows && record.answered &&
        (record.answered->restores < host_.state.restores() ||
         record.answered->step < host_.state.shard()->step())) {
      host_.out.close(record.step);
    }
  }
}

BodyPlan RunStart::restore_came(PeerConnection& from) {
  // The body was received into that shard, so only it can be complete now.
  const std::shared_ptr<Shard> shard = std::move(from.shard);
  if (shard != host_.state.shard()) {
    return {.next = BodyPlan::Next::kStop};  // a newer chief has begun another run meanwhile
  }
  const net::FrameHeader& header = from.header;
  host_.state.finish_restore(header.step, header.generation);
  host_.answers.share_step();
  // Elastic runs do not expect all: they go on with the trainers that are present.
  host_.end.begin_steps(/*expects_all=*/!shard->config().elastic());
  if ((header.flags & net::kFlagFinished) != 0) {
    host_.conclude();
  }
  host_.trainers.need(0,
                      host_.now);  // time with too few trainers before the restore does not count
  host_.count_needed();
  host_.send_report();
  host_.out.info("holds parameters [" + std::to_string(shard->range().begin) + ", " +
                 std::to_string(shard->range().end) + ") at step " + std::to_string(header.step) +
                 ", generation " + std::to_string(net::number_of(host_.state.generation())));
  host_.out.send(from.id, net::Ack{header.request_id}.to_header());
  // Rolled back: trainers that were done train again, and requests about steps of the old state are
  // fenced.
  host_.trainers.none_is_done();
  host_.answers.fence_waiting();
  host_.answers.answer_waiting(host_.now);
  host_.serve_evaluators();
  return {};
}

}  // namespace disttf::roles
