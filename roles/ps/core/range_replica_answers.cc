#include <algorithm>
#include <cstdint>
#include <vector>

#include "roles/ps/core/range_replica.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

// The request is about a state that is no more: its sender is to pull again.
void RangeReplica::fence(ConnectionId id, const FrameHeader& header) {
  out_.send(id, {.kind = FrameKind::kFenced,
                 .request_id = header.request_id,
                 .step = shard_ ? shard_->step() : 0,
                 .generation = generation_});
}

void RangeReplica::wait_for_answer(std::size_t rank, ConnectionId id, const FrameHeader& header) {
  if (trainers_[rank].step == id) {  // else a newer connection has taken its place
    trainers_[rank].waiting =
        WaitingRequest{.connection = id, .header = header, .log_index = log_.head()};
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
    if (!waiting || !is_answerable(rank, waiting->header) || !is_safe(*waiting)) {
      continue;
    }
    const WaitingRequest request = *waiting;
    waiting.reset();
    trainers_[rank].owed = 0;
    switch (request.header.kind) {
      case FrameKind::kGetConfig:
        send_config(request);
        break;
      case FrameKind::kGoodbye:
        out_.send(request.connection,
                  {.kind = FrameKind::kAck, .request_id = request.header.request_id});
        break;
      default:
        send_parameters(rank, request);
        break;
    }
  }
}

bool RangeReplica::is_answerable(std::size_t rank, const FrameHeader& header) const {
  if (header.kind == FrameKind::kGoodbye) {
    return may_leave(rank);
  }
  if (over_) {
    return true;
  }
  if (header.kind == FrameKind::kPushPull) {
    return shard_->answerable(rank);
  }
  if ((header.flags & net::kFlagNext) != 0) {
    return header.step < shard_->step() || shard_->finished();
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

// "First and stride" of the micro-batches that this trainer takes: first | stride << 32; 0: none.
std::uint64_t RangeReplica::share_of(std::size_t rank) const {
  const auto place = std::ranges::find(dealt_to_, rank);
  if (place == dealt_to_.end()) {
    return 0;
  }
  return static_cast<std::uint64_t>(place - dealt_to_.begin()) |
         static_cast<std::uint64_t>(dealt_to_.size()) << 32U;
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
    if (!record.waiting || (record.waiting->header.flags & net::kFlagNext) == 0 ||
        record.owed != 0) {
      return;
    }
    idle.push_back(&record);
  }
  const std::vector<std::size_t> missing = shard_->missing();
  for (std::size_t each = 0; each < missing.size() && !idle.empty(); ++each) {
    TrainerRecord& record = *idle[each % idle.size()];
    ++record.owed;
    out_.send(record.waiting->connection, {.kind = FrameKind::kWork,
                                           .request_id = record.waiting->header.request_id,
                                           .step = shard_->step(),
                                           .sequence = missing[each],
                                           .generation = generation_});
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
             .request_id = request.header.request_id,
             .step = shard_->step(),
             .generation = generation_},
            {bytes.begin(), bytes.end()});
}

void RangeReplica::send_parameters(std::size_t rank, const WaitingRequest& request) {
  Answer answer = shard_->answer(rank);
  if ((request.header.flags & net::kFlagPrevious) != 0) {
    answer = shard_->previous().value_or(answer);
  }
  const bool finished = answer.finished || over_;
  std::uint16_t flags = finished ? net::kFlagFinished : 0;
  if (answer.dropped && request.header.kind == FrameKind::kPushPull) {
    flags |= net::kFlagDropped;
  }
  // Async: what the trainer's next push is to be numbered above.
  const std::uint64_t sequence = shard_->config().elastic()
                                     ? share_of(rank)
                                     : std::max(request.header.sequence, shard_->counts_from(rank));
  FrameHeader header{.kind = FrameKind::kParameters,
                     .flags = flags,
                     .request_id = request.header.request_id,
                     .step = answer.step,
                     .sequence = sequence,
                     .range_begin = shard_->range().begin,
                     .generation = generation_};
  std::span<const std::byte> body = std::as_bytes(answer.parameters);
  if ((request.header.flags & tensor_flags(shard_->wire())) != 0 && !finished) {
    header.flags |= tensor_flags(shard_->wire());
    body = shard_->as_sent(rank, answer);
  }
  trainers_[rank].answered = restores_;
  out_.add(SendFrame{
      .to = request.connection, .header = header, .body = {}, .borrowed = body, .owner = shard_});
}

}  // namespace disttf::roles
