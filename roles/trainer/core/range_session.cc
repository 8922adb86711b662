#include "roles/trainer/core/range_session.h"

#include <algorithm>
#include <utility>

namespace disttf::roles {

RangeSession::RangeSession(const Task& task, std::size_t index)
    : task_(&task),
      index_(index),
      name_(describe(task.cluster, {.job = net::Job::kPs, .index = index})) {}

RangeSession::Fit RangeSession::welcomed(const net::Welcome& welcome, bool replicated) {
  // Of a replicated range only the primary serves trainers.
  if (replicated && welcome.replica_role != net::ReplicaRole::kPrimary) {
    if (welcome.state == net::ShardState::kFinished) {
      state_ = welcome.state;  // the host may know that the run is over without holding its result
    }
    const bool trains_without =
        welcome.replica_role == net::ReplicaRole::kOnly && welcome.state == net::ShardState::kReady;
    return trains_without ? Fit::kNoReplicas : Fit::kElsewhere;
  }
  is_open_ = true;
  // A reservation belongs to the link on which its push began.
  reserved_id_ = 0;
  state_ = welcome.state;
  held_ = {.incarnation = welcome.incarnation, .generation = welcome.generation};
  // An empty ps fits no pinned state, even if its numbers agree.
  const bool fits = !pinned_ || (held_ == *pinned_ && state_ != net::ShardState::kEmpty);
  return fits ? Fit::kOpen : Fit::kOtherState;
}

void RangeSession::received(const net::Parameters& parameters, std::uint64_t push) noexcept {
  state_ = net::ShardState::kReady;
  held_.generation = parameters.generation;
  // The pinned state takes the generation of the parameters.
  if (pinned_) {
    pinned_->generation = held_.generation;
  }
  step_ = parameters.step;
  if (last_answer_.generation != held_.generation) {
    // Steps and pushes of two generations cannot be compared.
    last_answer_ = {.generation = held_.generation};
  }
  // max(): the answer to a repeated request may be older than one that has arrived.
  last_answer_.step = std::max(last_answer_.step, step_);
  last_answer_.push = std::max(last_answer_.push, push);
}

std::uint64_t RangeSession::reserve_request_id() noexcept {
  if (reserved_id_ == 0) {
    // Asked for again by each further part of the same push.
    reserved_id_ = next_request_id_++;
  }
  return reserved_id_;
}

bool RangeSession::number(net::FrameHeader& request) noexcept {
  const std::uint64_t reserved = std::exchange(reserved_id_, 0);
  // The number was reserved for a push that has begun: another frame in between would break the
  // stream.
  if (reserved != 0 && request.kind != net::FrameKind::kPushPull) {
    return false;
  }
  request.request_id = reserved != 0 ? reserved : next_request_id_++;
  return true;
}

}  // namespace disttf::roles
