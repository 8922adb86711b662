#include "roles/ps/core/push_receiver.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "net/wire/cluster.h"
#include "net/wire/messages.h"
#include "run/wire_format.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

namespace {

// Returns whether this rank leads its host group.
bool is_leader(const Task& task, std::size_t rank) {
  return net::host_group_of(task.cluster, rank).first == rank;
}

}  // namespace

const PeerConnection* PushReceiver::trainer(ConnectionId id) const {
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.role != PeerConnection::Role::kTrainer) {
    return nullptr;
  }
  const PeerConnection& from = found->second;
  return host_.order.is_replaced(from.rank, from.hello.incarnation) ? nullptr : &from;
}

bool PushReceiver::takes(ConnectionId id, const FrameHeader& header) const {
  return (header.kind == FrameKind::kPushPull || header.kind == FrameKind::kPush) &&
         trainer(id) != nullptr;
}

bool PushReceiver::takes_body(ConnectionId id) const {
  const PeerConnection* const from = trainer(id);
  return from != nullptr && from->is_reading_gradient();
}

BodyPlan PushReceiver::header(ConnectionId id, const FrameHeader& header, Clock::time_point now,
                              const net::BodyInPlace& in_place) {
  host_.now = now;
  PeerConnection& from = connections_.at(id);
  from.header = header;
  host_.received(from);
  return took(push_came(from, in_place));
}

BodyPlan PushReceiver::body(ConnectionId id, Clock::time_point now) {
  host_.now = now;
  PeerConnection& from = connections_.at(id);
  // Taken out first: a handler may ask for another part of the same body.
  return took(part_came(from, std::exchange(from.part, Part::kNone)));
}

BodyPlan PushReceiver::took(BodyPlan plan) {
  host_.count_needed();
  host_.serve_evaluators();
  return plan;
}

BodyPlan PushReceiver::push_came(PeerConnection& from, const net::BodyInPlace& in_place) {
  const FrameHeader& header = from.header;
  // A push of a replaced state is discarded, not refused: its trainer may not have received
  // the replacement yet. Its size is not known here, hence the general limit.
  if (!host_.state.is_of(header.generation)) {
    if (header.body_size > kMaxParameters * sizeof(float)) {
      return from.refuse(host_.out, kError,
                         "the gradient is larger than that of the largest model");
    }
    return discard(from, Part::kFencedGradient);
  }
  const bool is_group_sum = (header.flags & net::kFlagGroupSum) != 0;
  if (is_group_sum) {
    if (const auto fault = fault_in_sum(from)) {
      return from.refuse(host_.out, kError, *fault);
    }
  }
  // A member's push has no body, so only the leader's body has a form and a size to check.
  if (!is_group_sum || is_leader(host_.task, from.rank)) {
    if (const auto fault = host_.state.gradient_fault(header, !in_place.bytes.empty())) {
      return from.refuse(host_.out, kError, *fault);
    }
  }
  if (host_.state.shard()->config().elastic() != (header.kind == FrameKind::kPush)) {
    return from.refuse(host_.out, kError, "a push of another mode than the run's");
  }
  // The trainer has sent a newer PULL, so this push is outdated.
  if (header.kind == FrameKind::kPush && header.request_id < from.pulled) {
    return discard(from, Part::kOutdatedGradient);
  }
  return admit(from, in_place);
}

// The addresses alone decide which trainers form a group; a trainer's own claim does not.
std::optional<std::string> PushReceiver::fault_in_sum(const PeerConnection& from) const {
  const RunConfig& config = host_.state.shard()->config();
  const WireFormat& wire = host_.state.shard()->storage().wire();
  if (!config.every_gradient_counts() || config.elastic() || config.max_gradient_norm != 0 ||
      tensor_flags(wire) != 0 || gradient_flags(wire) != 0) {
    return "a sum of gradients in a run that does not use group sums";
  }
  const net::HostGroup group = net::host_group_of(host_.task.cluster, from.rank);
  if (group.count == 1) {
    return "a sum of gradients from a host that has one trainer, or whose trainers' ranks are no "
           "subtree of a step's sum";
  }
  if (group.first != from.rank && from.header.body_size != 0) {
    return "a sum of gradients from another trainer of the host than the first";
  }
  return std::nullopt;
}

BodyPlan PushReceiver::part_came(PeerConnection& from, Part part) {
  switch (part) {
    case Part::kUnwantedGradient:
      // A restore may have replaced the state while the body was being discarded.
      return ended(from, host_.state.is_of(from.header.generation));
    case Part::kFencedGradient:
      return ended(from, false);
    case Part::kOutdatedGradient:
      return {};
    case Part::kPackedGradient:
      if (unpack_gradient(from.shard->storage().wire(), from.places.front(), from.destination)) {
        return from.refuse(
            host_.out, kError,
            "a sparse gradient whose components are not ascending ones of the range of " +
                describe(host_.task.cluster, host_.task.self) + ", none of them 0");
      }
      break;
    default:
      break;
  }
  return commit(from, {});
}

BodyPlan PushReceiver::admit(PeerConnection& from, const net::BodyInPlace& in_place) {
  const FrameHeader& header = from.header;
  net::PushPull push_pull;
  net::Push push;
  const bool is_elastic = header.kind == FrameKind::kPush;
  if (const auto error = is_elastic ? push.from_header(header) : push_pull.from_header(header)) {
    return from.refuse(host_.out, kError, error.message());
  }
  from.push = {.trainer = from.rank,
               .incarnation = from.hello.incarnation,
               .step = header.step,
               .sequence = push_pull.push,
               // Only the chief may request a snapshot shard.
               .wants_snapshot = from.rank == 0 && push_pull.keep_snapshot,
               .micro_batch = static_cast<std::size_t>(push.micro_batch),
               // A packed gradient must be unpacked first, so it is never used where it lies.
               .in_place = !in_place.bytes.empty() && (header.flags & net::kTensorForms) == 0};
  if (push_pull.group_sum) {
    const net::HostGroup group = net::host_group_of(host_.task.cluster, from.rank);
    from.push.is_in_sum = group.first != from.rank;
    from.push.summed = from.push.is_in_sum ? 1 : group.count;
  }
  const Admission admission = host_.state.shard()->admit(from.push);
  // kLostPeers: a restart of the trainer may help, since it joins the current state then.
  if (admission.verdict == Admission::Verdict::kRefuse) {
    return from.refuse(host_.out, kLostPeers, admission.why);
  }
  if (admission.verdict == Admission::Verdict::kDiscard) {
    // A discarded gradient also counts as one that the trainer had to send.
    if (MicroBatchScheduler* const scheduler = host_.state.scheduler()) {
      scheduler->came(from.rank);
    }
    return discard(from, Part::kUnwantedGradient);
  }
  // Keeps the shard alive while the body is received, even if a new run replaces it.
  from.shard = host_.state.shard();
  if (from.push.in_place) {
    const std::span<const std::byte> bytes = in_place.bytes;
    from.gradient = {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
    return commit(from, in_place);
  }
  from.destination = admission.destination;
  from.gradient = admission.destination;
  if ((header.flags & net::kTensorForms) != 0) {
    return from.into(Part::kPackedGradient,
                     from.shard->storage().packed_inbox(from.rank, header.body_size));
  }
  return from.into(Part::kGradient, std::as_writable_bytes(admission.destination));
}

BodyPlan PushReceiver::discard(PeerConnection& from, Part part) {
  return from.header.body_size == 0 ? part_came(from, part) : from.discard(part);
}

BodyPlan PushReceiver::commit(PeerConnection& from, const net::BodyInPlace& in_place) {
  // Moved out, so that an idle connection does not keep the memory of a replaced shard.
  const std::shared_ptr<Shard> shard = std::move(from.shard);
  // The state may have been replaced while the gradient was being received.
  const bool stands = host_.state.is_of(from.header.generation) && shard == host_.state.shard();
  // Judged before it is committed: a refused gradient must not become part of a sum.
  if (stands) {
    if (const auto fault = shard->fault_in(from.push, from.gradient)) {
      const std::string sentence =
          "the gradient for step " + std::to_string(from.push.step) + " " + *fault;
      // The refusal ends the trainer; one warning per connection suffices if the gradient is used.
      if (shard->config().rejected_gradients == RejectedGradients::kRefuse) {
        return from.refuse(host_.out, kError, sentence);
      }
      if (!std::exchange(from.has_pushed_bad, true)) {
        host_.out.warn(from.peer + ": " + sentence +
                       "; it is used, and further ones are only counted");
      }
    }
    const std::uint64_t step = shard->step();
    // A group sum counts as the arrival of each of its members.
    for (std::size_t rank = from.rank; rank < from.rank + from.push.summed; ++rank) {
      host_.times.arrived(rank, from.push.step, host_.now);
    }
    shard->commit(from.push, {.gradient = from.gradient, .memory = in_place.owner});
    if (shard->step() != step) {
      host_.times.making(step, shard->step(), host_.now);
    }
    if (MicroBatchScheduler* const scheduler = host_.state.scheduler()) {
      scheduler->came(from.rank);
      // Elastic: the new shares are set before any answer is sent, since each answer carries one.
      if (shard->step() != step) {
        host_.answers.share_step();
        host_.answers.answer_waiting(host_.now);
      }
    }
  }
  return ended(from, stands);
}

// `stands`: the state of the push is still that of the ps.
BodyPlan PushReceiver::ended(PeerConnection& from, bool stands) {
  if (from.header.kind == FrameKind::kPush) {
    // This may have been the last gradient that was still expected, while that of a lost trainer is
    // missing.
    host_.answers.schedule_missing();
    return {};  // no reply: the trainer's next pull carries the result
  }
  net::PushPull push;
  if (stands && !push.from_header(from.header)) {
    // Only a member's answer has no body: the leader receives the parameters.
    push.group_sum = push.group_sum && !is_leader(host_.task, from.rank);
    host_.answers.wait(from.rank, from.id, push, host_.now);
  } else {
    // The state was replaced: the trainer joins the run again and computes from the new state.
    host_.answers.fence(from.id, from.header.request_id);
  }
  return {};
}

}  // namespace disttf::roles
