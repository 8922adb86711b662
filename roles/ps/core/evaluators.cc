#include "roles/ps/core/evaluators.h"

#include <algorithm>
#include <new>
#include <utility>

#include "math/aligned.h"
#include "net/wire/bare_message.h"
#include "net/wire/messages.h"

namespace disttf::roles {

void Evaluators::connected(ConnectionId id, std::uint64_t incarnation) {
  std::erase_if(evaluators_, [this, incarnation](const Evaluator& each) {
    const bool is_old = each.incarnation == incarnation;
    if (is_old) {
      out_.close(each.id);
    }
    return is_old;
  });
  // The oldest may be gone without a trace, since evaluators send no heartbeats.
  if (evaluators_.size() == kMost) {
    out_.close(evaluators_.front().id);
    evaluators_.erase(evaluators_.begin());
  }
  evaluators_.push_back({.id = id, .incarnation = incarnation, .watch = {}});
}

void Evaluators::closed(ConnectionId id) {
  std::erase_if(evaluators_, [id](const Evaluator& each) { return each.id == id; });
}

BodyPlan Evaluators::header(PeerConnection& from, std::shared_ptr<const std::string> config,
                            bool is_backup) {
  const net::FrameHeader& header = from.header;
  if (net::is_bodiless<net::GetConfig>(header)) {
    if (config) {
      out_.send_text(from.id, net::Config{header.request_id}.to_header(), std::move(config));
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
  if (is_backup) {  // no longer the primary that the evaluator has found
    out_.close(from.id);
    return {.next = BodyPlan::Next::kStop};
  }
  const auto asks = std::ranges::find(evaluators_, from.id, &Evaluator::id);
  if (asks != evaluators_.end()) {  // else it has just been closed
    asks->watch = watch;
  }
  return {};
}

void Evaluators::serve(const Offer& offer) {
  Shard* const shard = offer.shard;
  const bool has_result = offer.has_result;
  // One copy for all: it must not change while it is sent, and the parameters do.
  std::shared_ptr<math::AlignedVector> copy;
  for (Evaluator& each : evaluators_) {
    const bool has_step = each.watch && offer.has_steps && shard->step() >= each.watch->step;
    if (!each.watch || (!has_result && !has_step && !offer.is_over)) {
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
                                        .generation = offer.generation,
                                        .is_result = has_result};
    out_.add(SendFrame{.to = each.id,
                       .header = reply.to_header(),
                       .body = {},
                       .borrowed = std::as_bytes(std::as_const(*copy).span()),
                       .owner = copy});
  }
}

void Evaluators::send_heartbeats() {
  for (const Evaluator& each : evaluators_) {
    if (each.watch) {
      out_.send(each.id, net::Heartbeat{.request_id = each.watch->request_id}.to_header());
    }
  }
}

void Evaluators::close() {
  for (const Evaluator& each : evaluators_) {
    out_.close(each.id);
  }
  evaluators_.clear();
}

void Evaluators::refuse(const net::Refusal& verdict) {
  for (const Evaluator& each : evaluators_) {
    out_.add(RefuseConnection{.id = each.id,
                              .request_id = each.watch ? each.watch->request_id : 0,
                              .exit_code = verdict.exit_code,
                              .sentence = verdict.sentence});
  }
}

std::vector<ConnectionId> Evaluators::ids() const {
  std::vector<ConnectionId> ids;
  for (const Evaluator& each : evaluators_) {
    ids.push_back(each.id);
  }
  return ids;
}

}  // namespace disttf::roles
