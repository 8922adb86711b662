// Runs an operation: carries out the core's effects and reads what arrives, until there is an
// outcome.
#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "roles/trainer/shell/ps_client.h"
#include "run/outcome.h"

namespace disttf::roles {

using net::FrameHeader;

net::Deadline PsClient::begin_now() noexcept {
  awake_ = net::FreezeWatch();
  may_stay_ = false;
  return awake_.now();
}

void PsClient::run(const std::function<void()>& meanwhile) {
  using Outcome = RunSession::Outcome;
  perform();
  // Between sending and waiting, since the ps work meanwhile.
  if (meanwhile) {
    meanwhile();
  }
  while (session_.outcome() == Outcome::kUnderWay || session_.outcome() == Outcome::kNeedsState) {
    if (session_.outcome() == Outcome::kNeedsState) {
      // Only a chief is asked for a state.
      state_ = provide_state_();
      session_.provided(state_->step, net::Clock::now());
    } else {
      await_some();
    }
    perform();
  }
  // A state is as large as the parameters and the optimizer's tensors.
  state_.reset();
  if (session_.outcome() == Outcome::kFailed) {
    throw Failure(session_.failure());
  }
  if (session_.outcome() == Outcome::kRunOver) {
    throw RunOver();
  }
  if (session_.outcome() == Outcome::kOtherConfiguration) {
    if (provide_state_) {  // this chief's configuration has been replaced by another chief's
      throw Failure(kLostPeers,
                    "another chief has published another configuration; this one no longer leads "
                    "the run");
    }
    throw OtherConfiguration();
  }
}

// Waits until something has arrived, or a timer has expired.
void PsClient::await_some() {
  check_awake();
  // A timer may be overdue: a lost ps was being dialed.
  const net::Deadline deadline = std::max(session_.deadline(), awake_.now());
  awake_.expect(deadline);
  prepare_poll();
  if (polls_) {
    static_cast<void>(wait_.wait_for_any(polled_, stop_.interrupt(), deadline,
                                         gradients_.memory() != nullptr ? &poller_ : nullptr));
  } else {
    stop_.interrupt().wait_until(deadline);
  }
  stop_.throw_if_stopped();
  check_awake();
  // Members that wait for this leader would otherwise count it as lost.
  host_sum_.beat(awake_.now());
  // One time for all links: what arrived while a lost ps was being dialed must be seen by the next
  // poll before its sender's heartbeat timeout expires.
  const net::Deadline now = awake_.now();
  for (std::size_t index = 0; index < links_.size(); ++index) {
    if (session_.reads(index) && (polled_[index].revents != 0 || links_[index].has_frame())) {
      receive(index);
    }
  }
  push_without_leader();
  replaced_->drain([this, now](std::size_t ps, net::Generation generation) {
    session_.is_replaced(ps, generation, now);
  });
  look_at_incarnations(now);
  // Last: what has arrived proves its sender alive.
  session_.time(now);
}

void PsClient::look_at_incarnations(net::Deadline now) {
  if (reported_incarnation_ != 0) {
    session_.record_incarnation(reported_incarnation_.exchange(0), now);
  }
}

void PsClient::prepare_poll() {
  polls_ = false;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const bool reads = session_.reads(index);
    polled_[index] = {.fd = reads ? links_[index].fd() : -1, .events = POLLIN, .revents = 0};
    polls_ = polls_ || reads;
  }
  polled_[links_.size()] = {.fd = host_sum_.fd(), .events = POLLIN, .revents = 0};
}

bool PsClient::AnswerPoller::is_ready() noexcept {
  for (std::size_t index = 0; index < client_.links_.size(); ++index) {
    if (client_.session_.reads(index) && client_.links_[index].has_frame()) {
      return true;
    }
  }
  return false;
}

void PsClient::AnswerPoller::set_parked(bool parked) noexcept {
  client_.gradients_.memory()->set_parked(parked);
}

void PsClient::check_awake(net::Deadline until) {
  const net::Clock::duration missed = awake_.missed(net::Clock::now(), until);
  if (missed != net::Clock::duration::zero()) {
    session_.forgive(missed);
  }
}

void PsClient::receive(std::size_t index) {
  PsLink& link = links_[index];
  FrameHeader header;
  // The heartbeat timeout starts here: a frame's first bytes have arrived already.
  const net::Deadline begin = net::Clock::now();
  auto error = link.receive_header(header, begin);
  stop_.throw_if_stopped();
  if (error) {
    session_.lost(index, error, net::Clock::now());
    return;
  }
  const ReplyPlan plan = session_.header(index, header, begin);
  if (plan == ReplyPlan::kNothing) {
    return;
  }
  if (plan == ReplyPlan::kRefusal) {
    const net::Refusal refusal = link.receive_refusal(header);
    session_.refused(index, refusal, net::Clock::now());
    return;
  }
  if (plan == ReplyPlan::kParameters) {
    note_answer(index, begin);
  }
  error = receive_body(index, plan, header);
  if (plan == ReplyPlan::kParameters) {
    receiving_ += net::Clock::now() - begin;
  }
  if (error) {
    link.close();
    session_.lost(index, error, net::Clock::now());
  } else {
    // Parameters that stay in the ps's memory took no time to arrive.
    const bool stays = may_stay_ && places_[index].view != nullptr;
    session_.body(index, stays ? begin : net::Clock::now());
  }
}

void PsClient::note_answer(std::size_t index, net::Deadline begin) noexcept {
  // The time for receiving earlier answers is this trainer's own, and no wait for a ps.
  const net::Deadline came = begin - receiving_;
  last_ps_ = {.index = static_cast<std::uint32_t>(index),
              .seconds = std::exchange(has_answer_, true)
                             ? std::chrono::duration<float>(came - answer_came_).count()
                             : 0};
  answer_came_ = came;
}

std::error_code PsClient::receive_body(std::size_t index, ReplyPlan plan,
                                       const FrameHeader& header) {
  PsLink& link = links_[index];
  if (plan == ReplyPlan::kText) {
    return link.receive_text(header, text_);
  }
  const std::span<float> part = part_of(parameters_, index);
  const std::size_t offset = session_.range(index).range.begin;
  if ((header.flags & net::kFlagGroupSum) != 0) {
    check_awake(host_sum_.wait_until());
    const auto error = host_sum_.take(index, header, offset, part);
    check_awake();
    stop_.throw_if_stopped();
    return error;
  }
  const auto error = link.receive_parameters(header, part, may_stay_ ? &places_[index] : nullptr);
  if (!error && !(may_stay_ && places_[index].view)) {
    host_sum_.publish(index, header, offset, part);
  }
  return error;
}

}  // namespace disttf::roles
