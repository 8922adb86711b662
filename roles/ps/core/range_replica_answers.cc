#include <algorithm>
#include <cstdint>
#include <vector>

#include "roles/ps/core/range_replica.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

namespace {

MicroBatchDealer::Activity activity_of(const TrainerRecord& record) {
  using enum MicroBatchDealer::Activity;
  const bool waits = record.waiting && record.waiting->is<net::AwaitStep>();
  return !record.present() ? kAway : waits ? kWaits : kComputes;
}

}  // namespace

// The request is about a state that is no more: its sender is to pull again.
void RangeReplica::fence(ConnectionId id, std::uint64_t request_id) {
  out_.send(id, net::Fenced{request_id}.to_header());
}

void RangeReplica::wait_for_answer(std::size_t rank, ConnectionId id,
                                   const net::TrainerRequest& request) {
  if (trainers_[rank].step == id) {  // else a newer connection has taken its place
    trainers_[rank].waiting =
        WaitingRequest{.connection = id, .request = request, .log_index = log_.head()};
    answer_after(rank);
    deal_missing();
  }
}

void RangeReplica::answer_after(std::size_t rank) {
  if (shard_ && shard_->releases() == looked_at_) {
    answer(rank);
  } else {
    answer_waiting();
  }
}

void RangeReplica::answer_waiting() {
  looked_at_ = shard_ ? shard_->releases() : 0;
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    answer(rank);
  }
}

void RangeReplica::answer(std::size_t rank) {
  auto& waiting = trainers_[rank].waiting;
  if (!waiting || awaits_state() || !is_answerable(rank, *waiting) || !is_safe(*waiting)) {
    return;
  }
  const WaitingRequest request = *waiting;
  waiting.reset();
  if (dealer_) {
    dealer_->forget(rank);
  }
  if (request.is<net::GetConfig>()) {
    send_config(request);
  } else if (request.is<net::Goodbye>()) {
    out_.send(request.connection, net::Ack{request.id()}.to_header());
  } else {
    send_parameters(rank, request);
  }
}

bool RangeReplica::is_answerable(std::size_t rank, const WaitingRequest& waiting) const {
  if (waiting.is<net::Goodbye>()) {
    return end_.may_leave(rank, trainers_, now_);
  }
  if (end_.no_more_steps()) {
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

std::span<const MicroBatchDealer::Activity> RangeReplica::activities() {
  activities_.clear();
  for (const TrainerRecord& record : trainers_.records()) {
    activities_.push_back(activity_of(record));
  }
  return activities_;
}

void RangeReplica::deal_missing() {
  if (!dealer_ || !is_training() || shard_->finished()) {
    return;
  }
  const auto computes = [](const TrainerRecord& record) {
    return activity_of(record) == MicroBatchDealer::Activity::kComputes;
  };
  // (Somebody usually does, and is soon found.)
  if (std::ranges::any_of(trainers_.records(), computes) || !dealer_->is_stuck(activities())) {
    return;
  }
  for (const MicroBatchDealer::Deal& deal : dealer_->deal(activities(), shard_->missing())) {
    const WaitingRequest& waiting = *trainers_[deal.rank].waiting;
    out_.send(waiting.connection, net::Work{.request_id = waiting.id(),
                                            .step = shard_->step(),
                                            .micro_batch = deal.micro_batch,
                                            .generation = generation_}
                                      .to_header());
  }
}

void RangeReplica::send_config(const WaitingRequest& request) {
  const auto bytes = std::as_bytes(std::span(config_json_));
  out_.send(request.connection, net::Config{request.id()}.to_header(),
            {bytes.begin(), bytes.end()});
}

void RangeReplica::send_parameters(std::size_t rank, const WaitingRequest& request) {
  Answer answer = shard_->answer(rank);
  const auto* const pull = std::get_if<net::Pull>(&request.request);
  const auto* const await = std::get_if<net::AwaitStep>(&request.request);
  const auto* const push = std::get_if<net::PushPull>(&request.request);
  // What is from before the newest step is no result, even of a run that is about to end: a trainer
  // that joins it computes the newest step's gradient anew.
  const auto previous = pull != nullptr && pull->previous ? shard_->previous() : std::nullopt;
  if (previous) {
    answer = *previous;
  }
  net::Parameters parameters{.request_id = request.id(),
                             .step = answer.step,
                             .generation = generation_,
                             .finished = answer.finished || (end_.no_more_steps() && !previous),
                             .dropped = answer.dropped && push != nullptr};
  if (dealer_) {
    parameters.share = dealer_->share_of(rank);
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
