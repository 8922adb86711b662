#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "roles/ps/core/range_replica.h"
#include "roles/run/wire_format.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

BodyPlan RangeReplica::trainer_header(ConnectionId id, Connection& from,
                                      const net::BodyInPlace& in_place) {
  switch (from.header.kind) {
    case FrameKind::kPushPull:
    case FrameKind::kPush:
      return push_header(id, from, in_place);
    case FrameKind::kPublish:
      return publish_header(id, from);
    case FrameKind::kRestore:
      return restore_header(id, from);
    default:
      break;
  }
  if (from.header.body_size != 0) {
    return refuse(id, from, kError, "this kind of frame has no body here");
  }
  return bodiless(id, from);
}

BodyPlan RangeReplica::bodiless(ConnectionId id, Connection& from) {
  const FrameHeader& header = from.header;
  switch (header.kind) {
    case FrameKind::kHeartbeat:
      return return_beat(id, from);
    case FrameKind::kGetConfig:
      return ask<net::GetConfig>(id, from);
    case FrameKind::kPull:
      return (header.flags & net::kFlagNext) != 0 ? ask<net::AwaitStep>(id, from)
                                                  : ask<net::Pull>(id, from);
    case FrameKind::kGoodbye:
      return goodbye(id, from);
    case FrameKind::kShutdown:
      return shutdown(id, from);
    case FrameKind::kStatus:
      return send_status(id, from);
    default:
      break;
  }
  return refuse(id, from, kError,
                "frame kind " + std::to_string(static_cast<int>(header.kind)) +
                    " makes no sense from this task now");
}

// The trainer has its answer, and waits for other ps.
BodyPlan RangeReplica::return_beat(ConnectionId id, const Connection& from) {
  if (const auto error = net::Heartbeat{}.from_header(from.header)) {
    return refuse(id, from, kError, error.message());
  }
  out_.send(id, net::Heartbeat{}.to_header());
  return {};
}

BodyPlan RangeReplica::send_status(ConnectionId id, const Connection& from) {
  net::GetStatus request;
  if (const auto error = request.from_header(from.header)) {
    return refuse(id, from, kError, error.message());
  }
  const std::string text = status();
  const auto bytes = std::as_bytes(std::span(text));
  out_.send(id, net::StatusReply{request.request_id}.to_header(), {bytes.begin(), bytes.end()});
  return {};
}

template <typename Request>
BodyPlan RangeReplica::ask(ConnectionId id, Connection& from) {
  Request request;
  if (const auto error = request.from_header(from.header)) {
    return refuse(id, from, kError, error.message());
  }
  if (is_finishing() && !shard_) {  // a ps that was started again just when the run ended
    fence(id, request.request_id);
    return {};
  }
  if constexpr (std::is_same_v<Request, net::Pull>) {
    if (request.concludes && from.rank != 0) {
      return refuse(id, from, kError, "only the chief fetches the result");
    }
    if (request.concludes && is_training() && !shard_->config().every_gradient_counts()) {
      shard_->conclude();
      end_.conclude();
    }
  }
  if constexpr (std::is_same_v<Request, net::AwaitStep>) {
    if (awaits_state() || request.generation != generation_) {
      fence(id, request.request_id);
      return {};
    }
    if (from.rank == 0 && request.cut) {
      shard_->want_cut(request.push, request.step + 1);
    }
  }
  wait_for_answer(from.rank, id, request);
  return {};
}

// Why a frame with a tensor cannot be about this ps's range, if it cannot.
std::optional<std::string> RangeReplica::fault_in(const FrameHeader& header) const {
  const math::Range range = shard_->range();
  if (header.range_begin != range.begin || header.body_size != range.size() * sizeof(float)) {
    return "a tensor of " + std::to_string(header.body_size) + " bytes from float " +
           std::to_string(header.range_begin) + " on is not the range of " + self_text() + ": " +
           std::to_string(range.size() * sizeof(float)) + " bytes from float " +
           std::to_string(range.begin);
  }
  return std::nullopt;
}

// The same of one with a gradient, which lies there as the run's configuration says, or, where it
// is read in place, as floats.
std::optional<std::string> RangeReplica::gradient_fault(const FrameHeader& header,
                                                        bool is_in_place) const {
  const WireFormat& wire = shard_->wire();
  const std::uint16_t flags = gradient_flags(wire);
  const bool are_floats = (header.flags & net::kTensorForms) == 0;
  if ((header.flags & net::kTensorForms) != flags && !(is_in_place && are_floats)) {
    return "a gradient in another form than --wire_dtype and --compress of the run say";
  }
  if (are_floats) {
    return fault_in(header);
  }
  const math::Range range = shard_->range();
  if (header.range_begin != range.begin ||
      !is_gradient_size(wire, range.size(), header.body_size)) {
    return "a gradient of " + std::to_string(header.body_size) + " bytes from float " +
           std::to_string(header.range_begin) + " on is not one of the range of " + self_text() +
           ": " + std::to_string(longest_gradient(wire, range.size())) + " bytes from float " +
           std::to_string(range.begin);
  }
  return std::nullopt;
}

BodyPlan RangeReplica::push_header(ConnectionId id, Connection& from,
                                   const net::BodyInPlace& in_place) {
  const FrameHeader& header = from.header;
  if (!is_restored_ || header.generation != generation_) {
    if (header.body_size > kMaxParameters * sizeof(float)) {
      return refuse(id, from, kError, "no gradient is that large");
    }
    return discard(id, from, Part::kFencedGradient);
  }
  if (const auto fault = gradient_fault(header, !in_place.bytes.empty())) {
    return refuse(id, from, kError, *fault);
  }
  if (shard_->config().elastic() != (header.kind == FrameKind::kPush)) {
    return refuse(id, from, kError, "a push of another mode than the run's");
  }
  return admit(id, from, in_place);
}

BodyPlan RangeReplica::admit(ConnectionId id, Connection& from, const net::BodyInPlace& in_place) {
  const FrameHeader& header = from.header;
  net::PushPull push_pull;
  net::Push push;
  const bool is_elastic = header.kind == FrameKind::kPush;
  if (const auto error = is_elastic ? push.from_header(header) : push_pull.from_header(header)) {
    return refuse(id, from, kError, error.message());
  }
  from.push = {.trainer = from.rank,
               .incarnation = from.hello.incarnation,
               .step = header.step,
               .sequence = push_pull.push,
               .wants_cut = from.rank == 0 && push_pull.cut,
               .micro_batch = static_cast<std::size_t>(push.micro_batch),
               .in_place = !in_place.bytes.empty() && !is_elastic &&
                           (header.flags & net::kTensorForms) == 0};
  const Admission admission = shard_->admit(from.push);
  if (admission.verdict == Admission::Verdict::kRefuse) {
    return refuse(id, from, kLostPeers, admission.why);
  }
  if (admission.verdict == Admission::Verdict::kDiscard) {
    if (dealer_) {
      dealer_->came(from.rank);
    }
    return discard(id, from, Part::kUnwantedGradient);
  }
  from.shard = shard_;
  if (from.push.in_place) {
    return commit(id, from, in_place);
  }
  if ((header.flags & net::kTensorForms) != 0) {
    from.gradient = admission.destination;
    return into(from, Part::kPackedGradient, shard_->packed_inbox(from.rank, header.body_size));
  }
  return into(from, Part::kGradient, std::as_writable_bytes(admission.destination));
}

BodyPlan RangeReplica::packed_gradient_came(ConnectionId id, Connection& from) {
  if (unpack_gradient(from.shard->wire(), from.places.front(), from.gradient)) {
    return refuse(id, from, kError,
                  "a sparse gradient whose components are not ascending ones of the range of " +
                      self_text() + ", none of them 0");
  }
  return commit(id, from, {});
}

BodyPlan RangeReplica::commit(ConnectionId id, Connection& from, const net::BodyInPlace& in_place) {
  const std::shared_ptr<Shard> shard = std::move(from.shard);
  // The state may have been replaced while the gradient was on its way.
  const bool stands = is_of_this_state(from.header) && shard == shard_;
  if (stands) {
    const std::uint64_t step = shard->step();
    if (from.push.in_place) {
      const std::span<const std::byte> bytes = in_place.bytes;
      shard->commit(from.push,
                    {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)},
                    in_place.owner);
    } else {
      shard->commit(from.push);
    }
    if (shard->finished()) {
      count_needed();
    }
    if (dealer_) {
      dealer_->came(from.rank);
      if (shard->step() != step) {
        dealer_->begin_step(activities());
        answer_waiting();
      }
    }
  }
  return push_ended(id, from, stands);
}

bool RangeReplica::is_of_this_state(const FrameHeader& header) const {
  return is_restored_ && header.generation == generation_;
}

// `stands`: its state is still that of the ps.
BodyPlan RangeReplica::push_ended(ConnectionId id, Connection& from, bool stands) {
  if (from.header.kind == FrameKind::kPush) {
    deal_missing();  // it may have been the last that was owed, and another one's was lost
    return {};       // no reply: the trainer's next pull is told
  }
  net::PushPull push;
  if (stands && !push.from_header(from.header)) {
    wait_for_answer(from.rank, id, push);
  } else {
    fence(id, from.header.request_id);
  }
  return {};
}

std::string RangeReplica::status() const {
  nlohmann::ordered_json out;
  out["task"] = net::to_string(task_.self);
  out["generation"] = net::number_of(generation_);
  if (standing_ != net::Standing::kOnly) {
    out["view"] = view_.number.count;
    out["has_backup"] = log_.is_complete();
  }
  if (shard_) {
    const ShardCounters& counters = shard_->counters();
    out["step"] = shard_->step();
    out["finished"] = shard_->finished();
    if (shard_->config().sync_replicas && !shard_->finished()) {
      for (const std::size_t rank : shard_->missing()) {
        out["waiting_for"].push_back(net::to_string(task_.cluster.trainer(rank)));
      }
    }
    out["pushes"] = counters.pushes;
    out["applied"] = counters.applied;
    out["repeats"] = counters.repeats;
    out["dropped"] = counters.dropped;
    out["staleness_sum"] = counters.staleness_sum;
    out["staleness_max"] = counters.staleness_max;
  }
  return out.dump();
}

}  // namespace disttf::roles
