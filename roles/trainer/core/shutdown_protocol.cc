#include "roles/trainer/core/shutdown_protocol.h"

#include <algorithm>

namespace disttf::roles {
namespace {

using net::FrameKind;

// For a ps that was lost at the very end and is not needed any more: how long it is notified if it
// comes back.
constexpr std::chrono::seconds kShutdownTime{3};
// One ps has released this worker: the others were notified at the same time.
constexpr std::chrono::seconds kOthersFollow{1};

}  // namespace

ShutdownProtocol::ShutdownProtocol(RunContext& context, Dialer& dialer, StepExchange& exchange)
    : context_(context), dialer_(dialer), exchange_(exchange) {}

bool ShutdownProtocol::advance(Clock::time_point now) {
  if (stage_ == Stage::kLeaving) {
    leave_or_stay(now);
  }
  if (stage_ == Stage::kReleased && !exchange_.awaits_any()) {
    stage_ = Stage::kEnded;
  }
  if (stage_ == Stage::kFetching) {
    fetched();
  }
  // A loop: if all links are closed no answer is awaited, and the next part begins at once.
  while ((stage_ == Stage::kNotifying || stage_ == Stage::kNotifyingAgain) &&
         !exchange_.awaits_any()) {
    stage_ == Stage::kNotifying ? told(now) : notified_again(now);
  }
  return stage_ == Stage::kEnded;
}

void ShutdownProtocol::dialed(std::size_t range, Dialer::Result result, Clock::time_point now) {
  if (result == Dialer::Result::kUnderWay) {
    return;
  }
  const bool is_open = result == Dialer::Result::kOpen || result == Dialer::Result::kOtherState;
  if (stage_ == Stage::kReaching && is_open) {
    ++at_;
    reach(now);
  } else if (stage_ == Stage::kReaching) {
    // The parameters of all ps are needed, so one that cannot be reached ends the attempt.
    stage_ = Stage::kEnded;
  } else if (is_open) {
    stage_ = Stage::kNotifyingAgain;  // a new process at that address needs both frames
    notify_again(range, FrameKind::kShutdown, now);
  } else if (result == Dialer::Result::kRefused) {  // it has failed, or has recorded a newer chief
    context_.out.warn(dialer_.failure().what());
    forget_unnotified();
    reach_unnotified(now);
  } else {
    ++at_;
    reach_unnotified(now);
  }
}

void ShutdownProtocol::time(Clock::time_point now) {
  if (stage_ == Stage::kReleased && now >= deadline_) {
    // The result is durable: ps that have not answered by now are not waited for.
    exchange_.close_unfinished();
  } else if (stage_ == Stage::kFetching && now >= deadline_) {
    exchange_.leave_timed_out();  // a body that has begun to arrive may take longer
  } else if (stage_ == Stage::kPausing && now >= resume_at_) {
    at_ = 0;
    reach_unnotified(now);
  }
}

Clock::time_point ShutdownProtocol::deadline() const noexcept {
  switch (stage_) {
    case Stage::kReleased:
      return deadline_;
    case Stage::kFetching:
      // A body that has begun to arrive has a limit of its own.
      return exchange_.reads_any() ? deadline_ : Clock::time_point::max();
    case Stage::kPausing:
      return resume_at_;
    default:
      return Clock::time_point::max();
  }
}

// ---------------------------------------------------------------------------------- leaving

void ShutdownProtocol::say_goodbye(Clock::time_point now) {
  // In an elastic run a lost ps may lack micro-batches, so the run has to be joined again.
  exchange_.begin(context_.elastic ? OnLoss::kJoinAgain : OnLoss::kRepeat);
  for (const RangeSession& session : context_.ranges) {
    exchange_.ask(session.index(), net::Goodbye{.generation = session.generation()}.to_header(),
                  RequestBody::kNone, FrameKind::kAck, now);
  }
}

void ShutdownProtocol::begin_leaving(Clock::time_point now) {
  stage_ = Stage::kLeaving;
  was_released_ = false;
  say_goodbye(now);
}

void ShutdownProtocol::leave_or_stay(Clock::time_point now) {
  // A lost state means that steps are to be made again, unless a ps has reported the end of the
  // run.
  if (exchange_.is_state_lost()) {
    exchange_.close_unfinished();
    context_.close_all();
    was_released_ = context_.over;
    stage_ = Stage::kEnded;
  } else if (context_.over || exchange_.is_any_answered()) {
    // Any single answer suffices: the result is durable then, whatever becomes of the other ps.
    context_.over = true;
    was_released_ = true;
    exchange_.leave_lost();
    stage_ = Stage::kReleased;
    deadline_ = now + kOthersFollow;
  }
}

// --------------------------------------------------------------------- the final parameters

void ShutdownProtocol::begin_fetching(Clock::time_point now) {
  final_step_.reset();
  // Any state may answer; fetched() checks that all answers are of the same one.
  for (RangeSession& session : context_.ranges) {
    session.unpin();
  }
  stage_ = Stage::kReaching;
  at_ = 0;
  reach(now);
}

void ShutdownProtocol::reach(Clock::time_point now) {
  while (at_ < context_.ranges.size() && context_.ranges[at_].is_open()) {
    ++at_;
  }
  if (at_ < context_.ranges.size()) {
    // The limit is short: the ps are about to end, and a worker can do without their parameters.
    dialer_.begin(at_, now + kOthersFollow, now);
    return;
  }
  stage_ = Stage::kFetching;
  deadline_ = now + kOthersFollow;
  exchange_.begin(OnLoss::kLeave);
  for (const RangeSession& session : context_.ranges) {
    exchange_.ask(session.index(), net::Pull{.configuration = context_.configuration}.to_header(),
                  RequestBody::kNone, FrameKind::kParameters, now);
  }
}

void ShutdownProtocol::fetched() {
  const auto is_left = [this](const RangeSession& session) {
    return !exchange_.awaits(session.index()) && !exchange_.is_answered(session.index());
  };
  // One missing ps is enough: parts of the parameters are worth nothing.
  if (std::ranges::any_of(context_.ranges, is_left)) {
    exchange_.close_unfinished();
    stage_ = Stage::kEnded;
  } else if (!exchange_.awaits_any()) {
    // Otherwise there is no result: parts of two states do not fit together.
    if (are_of_one_state()) {
      final_step_ = exchange_.reply(0).step;
    }
    stage_ = Stage::kEnded;
  }
}

// A ps that was replaced while it was disconnected may still answer.
bool ShutdownProtocol::are_of_one_state() const {
  return std::ranges::all_of(context_.ranges, [this](const RangeSession& session) {
    return exchange_.reply(session.index()).generation == exchange_.reply(0).generation;
  });
}

// ----------------------------------------------------------------------- the end of the run

// All ps are notified that the run is over before the first of them ends, so that the remaining
// ones can tell a later chief.
void ShutdownProtocol::begin_notifying(Clock::time_point now) {
  result_ = generation_of_result();
  for (RangeSession& session : context_.ranges) {
    session.unpin();
  }
  notify_all(FrameKind::kShutdown, now);
}

// The generation of this chief's parameters; of a chief that starts after another one has concluded
// the run, the generation that a ps has recorded.
net::Generation ShutdownProtocol::generation_of_result() const {
  net::Generation told = 0;
  for (const RangeSession& session : context_.ranges) {
    if (session.state() == net::ShardState::kFinished) {
      // max(): of several chiefs the newest one counts.
      told = std::max(told, session.generation());
    }
  }
  return told != 0 ? told : context_.ranges.front().generation();
}

// Returns SHUTDOWN, or the GOODBYE after it.
net::FrameHeader ShutdownProtocol::last_word(FrameKind kind, const RangeSession& session) const {
  if (kind != FrameKind::kShutdown) {
    return net::Goodbye{}.to_header();
  }
  const bool is_own = result_ == session.generation();
  // 0: the ps does not compare the step.
  return net::Shutdown{.step = is_own ? session.step() : 0, .generation = result_}.to_header();
}

// Sends to all ps before it waits for the first answer; ps that were lost are notified again later.
void ShutdownProtocol::notify_all(FrameKind kind, Clock::time_point now) {
  stage_ = Stage::kNotifying;
  kind_ = kind;
  exchange_.begin(OnLoss::kLeave);
  for (const RangeSession& session : context_.ranges) {
    exchange_.ask(session.index(), last_word(kind, session), RequestBody::kNone, FrameKind::kAck,
                  now);
  }
}

void ShutdownProtocol::told(Clock::time_point now) {
  unnotified_.clear();
  for (std::size_t range = 0; range < context_.ranges.size(); ++range) {
    if (!exchange_.is_answered(range)) {
      unnotified_.push_back(range);
    }
  }
  // The time for repeated notification starts when the ps that answer have answered.
  deadline_ = now + kShutdownTime;
  // The first repetition follows soon.
  context_.backoff.reset();
  pause_or_end(now);
}

void ShutdownProtocol::pause_or_end(Clock::time_point now) {
  if (!unnotified_.empty() && now < deadline_) {
    stage_ = Stage::kPausing;
    resume_at_ = now + context_.backoff.next();
    return;
  }
  for (const std::size_t range : unnotified_) {
    context_.out.warn(context_.ranges[range].name() + " did not confirm the end of the run");
  }
  if (kind_ == FrameKind::kShutdown) {
    notify_all(FrameKind::kGoodbye, now);
  } else {
    stage_ = Stage::kEnded;
  }
}

void ShutdownProtocol::reach_unnotified(Clock::time_point now) {
  if (at_ >= unnotified_.size()) {
    pause_or_end(now);
    return;
  }
  stage_ = Stage::kReachingAgain;
  dialer_.begin(unnotified_[at_], deadline_, now);
}

void ShutdownProtocol::forget_unnotified() {
  unnotified_.erase(unnotified_.begin() + static_cast<std::ptrdiff_t>(at_));
}

void ShutdownProtocol::notify_again(std::size_t range, FrameKind kind, Clock::time_point now) {
  again_ = kind;
  exchange_.begin(OnLoss::kLeave);
  exchange_.ask(range, last_word(kind, context_.ranges[range]), RequestBody::kNone, FrameKind::kAck,
                now);
}

void ShutdownProtocol::notified_again(Clock::time_point now) {
  const std::size_t range = unnotified_[at_];
  if (!exchange_.is_answered(range)) {
    ++at_;
    reach_unnotified(now);
  } else if (again_ != kind_) {
    // A ps that has missed SHUTDOWN needs both frames.
    notify_again(range, FrameKind::kGoodbye, now);
  } else {
    forget_unnotified();
    reach_unnotified(now);
  }
}

void ShutdownProtocol::notify_at_once() {
  exchange_.begin(OnLoss::kLeave);
  stage_ = Stage::kEnded;
  // SHUTDOWN goes to all ps first, since a ps may end after its GOODBYE.
  for (const FrameKind kind : {FrameKind::kShutdown, FrameKind::kGoodbye}) {
    for (RangeSession& session : context_.ranges) {
      net::FrameHeader header = last_word(kind, session);
      // Errors do not matter: there is no one left to wait for.
      if (session.is_open() && session.number(header)) {
        context_.out.add(SendRequest{.range = session.index(), .header = header});
      }
    }
  }
}

}  // namespace disttf::roles
