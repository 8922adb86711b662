#include <algorithm>
#include <cstdint>
#include <vector>

#include "roles/ps/core/range_replica.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

// The request is about a state that is no more: its sender is to pull again.
void RangeReplica::fence(ConnectionId id, std::uint64_t request_id) {
  out_.send(id, net::Fenced{.request_id = request_id,
                            .step = shard_ ? shard_->step() : 0,
                            .generation = generation_}
                    .to_header());
}

void RangeReplica::wait_for_answer(std::size_t rank, ConnectionId id,
                                   const net::TrainerRequest& request) {
  if (trainers_[rank].step == id) {  // else a newer connection has taken its place
    trainers_[rank].waiting =
        WaitingRequest{.connection = id, .request = request, .log_index = log_.head()};
    answer_waiting();
    deal_missing();
  }
}

void RangeReplica::answer_waiting() {
  if (phase_ == Phase::kWaitingForChief) {
    return;
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    auto& waiting = trainers_[rank].waiting;
    if (!waiting || !is_answerable(rank, *waiting) || !is_safe(*waiting)) {
      continue;
    }
    const WaitingRequest request = *waiting;
    waiting.reset();
    trainers_[rank].owed = 0;
    if (request.is<net::GetConfig>()) {
      send_config(request);
    } else if (request.is<net::Goodbye>()) {
      out_.send(request.connection, {.kind = FrameKind::kAck, .request_id = request.id()});
    } else {
      send_parameters(rank, request);
    }
  }
}

bool RangeReplica::is_answerable(std::size_t rank, const WaitingRequest& waiting) const {
  if (waiting.is<net::Goodbye>()) {
    return may_leave(rank);
  }
  if (over_) {
    return true;
  }
  if (waiting.is<net::PushPull>()) {
    return shard_->answerable(rank);
  }
  if (const auto* const await = std::get_if<net::AwaitStep>(&waiting.request)) {
    return await->step < shard_->step() || shard_->finished();
  }
  return true;
}

// Whoever is here when a step begins shares it. Only ps 0's word counts, in its replies.
void RangeReplica::deal_step() {
  dealt_to_.clear();
  const bool enough = trainers_.present() >= least_present();
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (enough && trainers_[rank].present()) {
      dealt_to_.push_back(rank);
    }
  }
}

// The micro-batches that this trainer takes.
net::StepShare RangeReplica::share_of(std::size_t rank) const {
  const auto place = std::ranges::find(dealt_to_, rank);
  if (place == dealt_to_.end()) {
    return {};
  }
  return {.first = static_cast<std::uint32_t>(place - dealt_to_.begin()),
          .stride = static_cast<std::uint32_t>(dealt_to_.size())};
}

// When everybody who is here waits and the step is still not made, then those who were to compute
// the rest have left, or it was never dealt: it is dealt now. Whichever trainer computes a
// micro-batch, and if two do, the bits are the same, so ps need not agree on any of this.
void RangeReplica::deal_missing() {
  if (!shard_ || !shard_->config().elastic() || phase_ != Phase::kTraining || shard_->finished() ||
      trainers_.present() < least_present()) {
    return;
  }
  std::vector<TrainerRecord*> idle;
  for (TrainerRecord& record : trainers_.records()) {
    if (!record.present()) {
      continue;
    }
    if (!record.waiting || !record.waiting->is<net::AwaitStep>() || record.owed != 0) {
      return;
    }
    idle.push_back(&record);
  }
  const std::vector<std::size_t> missing = shard_->missing();
  for (std::size_t each = 0; each < missing.size() && !idle.empty(); ++each) {
    TrainerRecord& record = *idle[each % idle.size()];
    ++record.owed;
    out_.send(record.waiting->connection, net::Work{.request_id = record.waiting->id(),
                                                    .step = shard_->step(),
                                                    .micro_batch = missing[each],
                                                    .generation = generation_}
                                              .to_header());
  }
}

// The chief task is no worker, but trains.
std::size_t RangeReplica::least_present() const {
  return shard_->config().min_workers + task_.cluster.chief.size();
}

void RangeReplica::send_config(const WaitingRequest& request) {
  const auto bytes = std::as_bytes(std::span(config_json_));
  out_.send(request.connection,
            {.kind = FrameKind::kConfig,
             .request_id = request.id(),
             .step = shard_->step(),
             .generation = generation_},
            {bytes.begin(), bytes.end()});
}

void RangeReplica::send_parameters(std::size_t rank, const WaitingRequest& request) {
  Answer answer = shard_->answer(rank);
  const auto* const pull = std::get_if<net::Pull>(&request.request);
  const auto* const await = std::get_if<net::AwaitStep>(&request.request);
  const auto* const push = std::get_if<net::PushPull>(&request.request);
  if (pull != nullptr && pull->previous) {
    answer = shard_->previous().value_or(answer);
  }
  net::Parameters parameters{.request_id = request.id(),
                             .step = answer.step,
                             .generation = generation_,
                             .finished = answer.finished || over_,
                             .dropped = answer.dropped && push != nullptr};
  if (shard_->config().elastic()) {
    parameters.share = share_of(rank);
  } else {  // async: what the trainer's next push is to be numbered above
    parameters.counts_from =
        std::max(push != nullptr ? push->push : std::uint64_t{0}, shard_->counts_from(rank));
  }
  std::span<const std::byte> body = std::as_bytes(answer.parameters);
  const unsigned form = push != nullptr ? push->form : await != nullptr ? await->form : 0U;
  if ((form & tensor_flags(shard_->wire())) != 0 && !parameters.finished) {
    parameters.form = tensor_flags(shard_->wire());
    body = shard_->as_sent(rank, answer);
  }
  trainers_[rank].answered = {.restores = restores_, .step = answer.step};
  out_.add(SendFrame{.to = request.connection,
                     .header = parameters.to_header(),
                     .body = {},
                     .borrowed = body,
                     .owner = shard_});
}

}  // namespace disttf::roles
