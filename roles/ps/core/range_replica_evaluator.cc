// What evaluators may ask for: the configuration, and the parameters of a step to come. They are no
// trainers: nobody knows whether they are there, and no step and no end waits for them. A service
// that follows the run is one of them here.
//
// What they are sent is a copy, made once for all whom the same step answers: of each process one
// request waits at most, and the next one comes when the answer has. So those that are frozen, or
// take nothing, cost the memory of one copy each, and there are kMostEvaluators at most.
#include <algorithm>
#include <new>
#include <utility>

#include "math/aligned.h"
#include "net/wire/bare_message.h"
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {
namespace {

// Of one range. One more takes the place of the oldest.
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
  if (evaluators_.size() == kMostEvaluators) {
    out_.close(evaluators_.front().id);
    evaluators_.erase(evaluators_.begin());
  }
  evaluators_.push_back({.id = id, .incarnation = incarnation, .watch = {}});
}

BodyPlan RangeReplica::evaluator_header(PeerConnection& from) {
  const net::FrameHeader& header = from.header;
  if (net::is_bodiless<net::GetConfig>(header)) {
    // Before it holds a state a ps may have been published to by a chief that another ps refuses.
    const bool is_known = holds_state() || is_finishing();
    const auto bytes =
        is_known ? std::as_bytes(std::span(state_.config_json())) : std::span<const std::byte>{};
    out_.send(from.id,
              bytes.empty() ? net::Ack{header.request_id}.to_header()
                            : net::Config{header.request_id}.to_header(),
              {bytes.begin(), bytes.end()});
    return {};
  }
  net::Watch watch;
  if (header.body_size != 0 || watch.from_header(header)) {
    return from.refuse(out_, kError, "an evaluator asks for the configuration and for cuts only");
  }
  if (is_backup()) {  // no longer the one that it has found to be the primary
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
  const bool has_result = is_finishing() && shard && state_.is_restored() && state_.may_be_result();
  std::shared_ptr<math::AlignedVector> copy;
  for (Evaluator& each : evaluators_) {
    const bool has_step = each.watch && is_training() && shard->step() >= each.watch->step;
    if (!each.watch || (!has_result && !has_step && !is_finishing())) {
      continue;
    }
    const std::uint64_t request = std::exchange(each.watch, std::nullopt)->request_id;
    if (!has_result && !has_step) {  // the run is over, and nothing of it is here
      out_.send(each.id, net::Ack{request}.to_header());
      continue;
    }
    if (!copy) {
      try {
        copy = std::make_shared<math::AlignedVector>(shard->range().size());
      } catch (const std::bad_alloc&) {
        out_.close(each.id);  // training goes on; it may ask again
        continue;
      }
      const std::span<const float> evaluated = shard->evaluated();
      std::copy(evaluated.begin(), evaluated.end(), copy->data());
    }
    const net::CutReply reply{.request_id = request,
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
