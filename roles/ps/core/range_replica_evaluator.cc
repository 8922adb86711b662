// Requests of evaluators: the configuration, and the parameters of a later step. Evaluators are not
// trainers: their presence is not tracked, and no step and no end waits for them. A service that
// follows the run counts as an evaluator here.
//
// They receive a copy, made once for all that the same step answers. Of each process at most one
// request is outstanding, and the next one follows the answer. An evaluator that is suspended or
// does not read thus costs the memory of one copy, and there are at most kMostEvaluators.
#include <algorithm>
#include <new>
#include <utility>

#include "math/aligned.h"
#include "net/wire/bare_message.h"
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {
namespace {

// For one range. A further evaluator replaces the oldest one.
constexpr std::size_t kMostEvaluators = 8;

}  // namespace

void RangeReplica::take_evaluator(ConnectionId id, std::uint64_t incarnation) {
  std::erase_if(evaluators_, [this, incarnation](const Evaluator& each) {
    const bool is_old = each.incarnation == incarnation;
    if (is_old) {
      out_.close(each.id);
    }
    return is_old;
  });
  // The oldest may be gone without a trace, since evaluators send no heartbeats.
  if (evaluators_.size() == kMostEvaluators) {
    out_.close(evaluators_.front().id);
    evaluators_.erase(evaluators_.begin());
  }
  evaluators_.push_back({.id = id, .incarnation = incarnation, .watch = {}});
}

BodyPlan RangeReplica::evaluator_header(PeerConnection& from) {
  const net::FrameHeader& header = from.header;
  if (net::is_bodiless<net::GetConfig>(header)) {
    // Before a ps holds a state, its configuration may be that of a chief that another ps refuses.
    const bool is_known = holds_state() || is_finishing();
    if (is_known && !state_.config_json().empty()) {
      out_.send_text(from.id, net::Config{header.request_id}.to_header(), state_.shared_config());
    } else {
      out_.send(from.id, net::Ack{header.request_id}.to_header());
    }
    return {};
  }
  net::Watch watch;
  if (header.body_size != 0 || watch.from_header(header)) {
    return from.refuse(out_, kError,
                       "an evaluator may request the configuration and snapshot shards only");
  }
  if (is_backup()) {  // no longer the primary that the evaluator has found
    out_.close(from.id);
    return {.next = BodyPlan::Next::kStop};
  }
  const auto asks = std::ranges::find(evaluators_, from.id, &Evaluator::id);
  if (asks != evaluators_.end()) {  // else it has just been closed
    asks->watch = watch;
    serve_evaluators();
  }
  return {};
}

void RangeReplica::serve_evaluators() {
  if (evaluators_.empty()) {
    return;
  }
  const std::shared_ptr<Shard>& shard = state_.shard();
  // The state of a range that was dropped, or is not the result, must not be taken for it.
  const bool has_result = is_finishing() && shard && state_.is_restored() && state_.may_be_result();
  // One copy for all: it must not change while it is sent, and the parameters do.
  std::shared_ptr<math::AlignedVector> copy;
  for (Evaluator& each : evaluators_) {
    const bool has_step = each.watch && is_training() && shard->step() >= each.watch->step;
    if (!each.watch || (!has_result && !has_step && !is_finishing())) {
      continue;
    }
    // One request, one answer: the evaluator sends the next request.
    const std::uint64_t request = std::exchange(each.watch, std::nullopt)->request_id;
    if (!has_result && !has_step) {  // the run is over, and this host holds no result
      out_.send(each.id, net::Ack{request}.to_header());
      continue;
    }
    if (!copy) {
      try {
        copy = std::make_shared<math::AlignedVector>(shard->range().size());
      } catch (const std::bad_alloc&) {
        out_.close(each.id);  // training goes on; the evaluator may ask again
        continue;
      }
      const std::span<const float> evaluated = shard->storage().evaluated();
      std::copy(evaluated.begin(), evaluated.end(), copy->data());
    }
    const net::SnapshotShardReply reply{.request_id = request,
                                        .step = shard->step(),
                                        .range_begin = shard->range().begin,
                                        .generation = state_.generation(),
                                        .is_result = has_result};
    out_.add(SendFrame{.to = each.id,
                       .header = reply.to_header(),
                       .body = {},
                       .borrowed = std::as_bytes(std::as_const(*copy).span()),
                       .owner = copy});
  }
}

void RangeReplica::heartbeat_evaluators() {
  for (const Evaluator& each : evaluators_) {
    if (each.watch) {
      out_.send(each.id, net::Heartbeat{.request_id = each.watch->request_id}.to_header());
    }
  }
}

void RangeReplica::close_evaluators() {
  for (const Evaluator& each : evaluators_) {
    out_.close(each.id);
  }
  evaluators_.clear();
}

}  // namespace disttf::roles
