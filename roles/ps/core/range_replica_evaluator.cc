// What an evaluator may ask for: the configuration, and the parameters of a step to come. It is no
// trainer: nobody knows whether it is there, and no step and no end waits for it.
//
// What it is sent is a copy, made once for each of its requests: of the newest evaluator at most
// one request waits, and the next one comes when the answer has. So one that is frozen, or takes
// nothing, costs the memory of one copy.
#include <algorithm>
#include <new>
#include <utility>

#include "math/aligned.h"
#include "net/wire/bare_message.h"
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {

BodyPlan RangeReplica::evaluator_header(PeerConnection& from) {
  const net::FrameHeader& header = from.header;
  if (net::is_bodiless<net::GetConfig>(header)) {
    const auto bytes = std::as_bytes(std::span(state_.config_json()));
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
  watch_ = watch;
  serve_evaluator();
  return {};
}

void RangeReplica::serve_evaluator() {
  if (!watch_) {
    return;
  }
  const std::shared_ptr<Shard>& shard = state_.shard();
  const bool has_result = is_finishing() && shard && state_.is_restored() && state_.may_be_result();
  const bool has_step = is_training() && shard->step() >= watch_->step;
  if (!has_result && !has_step && !is_finishing()) {
    return;
  }
  const std::uint64_t request = watch_->request_id;
  watch_.reset();
  std::shared_ptr<math::AlignedVector> copy;
  if (has_result || has_step) {
    try {
      copy = std::make_shared<math::AlignedVector>(shard->range().size());
    } catch (const std::bad_alloc&) {
      out_.close(evaluator_);  // training goes on; it may ask again
      return;
    }
    std::ranges::copy(shard->evaluated(), copy->data());
  }
  if (!copy) {  // the run is over, and nothing of it is here
    out_.send(evaluator_, net::Ack{request}.to_header());
    return;
  }
  const net::CutReply reply{.request_id = request,
                            .step = shard->step(),
                            .range_begin = shard->range().begin,
                            .generation = state_.generation(),
                            .is_result = has_result};
  out_.add(SendFrame{.to = evaluator_,
                     .header = reply.to_header(),
                     .body = {},
                     .borrowed = std::as_bytes(std::as_const(*copy).span()),
                     .owner = copy});
}

}  // namespace disttf::roles
