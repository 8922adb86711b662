#include "roles/trainer/core/farewell.h"

#include <algorithm>

namespace disttf::roles {
namespace {

using net::FrameKind;

// For a ps that was lost at the very end and is not needed any more: how long it is notified if it
// comes back.
constexpr std::chrono::seconds kFarewellTime{3};
// One ps has released this worker: the others were notified at the same time.
constexpr std::chrono::seconds kOthersFollow{1};

}  // namespace

Farewell::Farewell(RunContext& context, Dialer& dialer, StepExchange& exchange)
    : context_(context), dialer_(dialer), exchange_(exchange) {}

bool Farewell::advance(Clock::time_point now) {
  if (stage_ == Stage::kLeaving) {
    leave_or_stay(now);
  }
  if (stage_ == Stage::kReleased && !exchange_.awaits_any()) {
    stage_ = Stage::kEnded;
  }
  if (stage_ == Stage::kFetching) {
    fetched();
  }
  while ((stage_ == Stage::kTelling || stage_ == Stage::kTellingAgain) && !exchange_.awaits_any()) {
    stage_ == Stage::kTelling ? told(now) : told_again(now);
  }
  return stage_ == Stage::kEnded;
}

void Farewell::dialed(std::size_t range, Dialer::Result result, Clock::time_point now) {
  if (result == Dialer::Result::kUnderWay) {
    return;
  }
  const bool is_open = result == Dialer::Result::kOpen || result == Dialer::Result::kOtherState;
  if (stage_ == Stage::kReaching && is_open) {
    ++at_;
    reach(now);
  } else if (stage_ == Stage::kReaching) {
    stage_ = Stage::kEnded;
  } else if (is_open) {
    stage_ = Stage::kTellingAgain;  // a new process at that address needs both frames
    tell_again(range, FrameKind::kShutdown, now);
  } else if (result == Dialer::Result::kRefused) {  // it has failed, or has recorded a newer chief
    context_.out.warn(dialer_.failure().what());
    forget_untold();
    reach_untold(now);
  } else {
    ++at_;
    reach_untold(now);
  }
}

void Farewell::time(Clock::time_point now) {
  if (stage_ == Stage::kReleased && now >= deadline_) {
    exchange_.close_unfinished();
  } else if (stage_ == Stage::kFetching && now >= deadline_) {
    exchange_.leave_silent();  // a body that has begun to arrive may take longer
  } else if (stage_ == Stage::kPausing && now >= resume_at_) {
    at_ = 0;
    reach_untold(now);
  }
}

Clock::time_point Farewell::deadline() const noexcept {
  switch (stage_) {
    case Stage::kReleased:
      return deadline_;
    case Stage::kFetching:
      return exchange_.reads_any() ? deadline_ : Clock::time_point::max();
    case Stage::kPausing:
      return resume_at_;
    default:
      return Clock::time_point::max();
  }
}

// ---------------------------------------------------------------------------------- leaving

void Farewell::say_goodbye(Clock::time_point now) {
  // In an elastic run a lost ps may lack micro-batches, so the run has to be joined again.
  exchange_.begin(context_.elastic ? OnLoss::kJoinAgain : OnLoss::kRepeat);
  for (const RangeSession& session : context_.ranges) {
    exchange_.ask(session.index(), net::Goodbye{.generation = session.generation()}.to_header(),
                  RequestBody::kNone, FrameKind::kAck, now);
  }
}

void Farewell::begin_leaving(Clock::time_point now) {
  stage_ = Stage::kLeaving;
  was_released_ = false;
  say_goodbye(now);
}

void Farewell::leave_or_stay(Clock::time_point now) {
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

void Farewell::begin_fetching(Clock::time_point now) {
  final_step_.reset();
  for (RangeSession& session : context_.ranges) {
    session.unpin();
  }
  stage_ = Stage::kReaching;
  at_ = 0;
  reach(now);
}

void Farewell::reach(Clock::time_point now) {
  while (at_ < context_.ranges.size() && context_.ranges[at_].is_open()) {
    ++at_;
  }
  if (at_ < context_.ranges.size()) {
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

void Farewell::fetched() {
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
bool Farewell::are_of_one_state() const {
  return std::ranges::all_of(context_.ranges, [this](const RangeSession& session) {
    return exchange_.reply(session.index()).generation == exchange_.reply(0).generation;
  });
}

// ----------------------------------------------------------------------- the end of the run

// All ps are notified that the run is over before the first of them ends, so that the remaining
// ones can tell a later chief.
void Farewell::begin_telling(Clock::time_point now) {
  result_ = generation_of_result();
  for (RangeSession& session : context_.ranges) {
    session.unpin();
  }
  tell_all(FrameKind::kShutdown, now);
}

// The generation of this chief's parameters; of a chief that starts after another one has concluded
// the run, the generation that a ps has recorded.
net::Generation Farewell::generation_of_result() const {
  net::Generation told = 0;
  for (const RangeSession& session : context_.ranges) {
    if (session.state() == net::ShardState::kFinished) {
      told = std::max(told, session.generation());
    }
  }
  return told != 0 ? told : context_.ranges.front().generation();
}

// Returns SHUTDOWN, or the GOODBYE after it.
net::FrameHeader Farewell::last_word(FrameKind kind, const RangeSession& session) const {
  if (kind != FrameKind::kShutdown) {
    return net::Goodbye{}.to_header();
  }
  const bool is_own = result_ == session.generation();
  return net::Shutdown{.step = is_own ? session.step() : 0, .generation = result_}.to_header();
}

// Sends to all ps before it waits for the first answer; ps that were lost are notified again later.
void Farewell::tell_all(FrameKind kind, Clock::time_point now) {
  stage_ = Stage::kTelling;
  kind_ = kind;
  exchange_.begin(OnLoss::kLeave);
  for (const RangeSession& session : context_.ranges) {
    exchange_.ask(session.index(), last_word(kind, session), RequestBody::kNone, FrameKind::kAck,
                  now);
  }
}

void Farewell::told(Clock::time_point now) {
  untold_.clear();
  for (std::size_t range = 0; range < context_.ranges.size(); ++range) {
    if (!exchange_.is_answered(range)) {
      untold_.push_back(range);
    }
  }
  // The time for repeated notification starts when the ps that answer have answered.
  deadline_ = now + kFarewellTime;
  // The first repetition follows soon.
  context_.backoff.reset();
  pause_or_end(now);
}

void Farewell::pause_or_end(Clock::time_point now) {
  if (!untold_.empty() && now < deadline_) {
    stage_ = Stage::kPausing;
    resume_at_ = now + context_.backoff.next();
    return;
  }
  for (const std::size_t range : untold_) {
    context_.out.warn(context_.ranges[range].name() + " did not confirm the end of the run");
  }
  if (kind_ == FrameKind::kShutdown) {
    tell_all(FrameKind::kGoodbye, now);
  } else {
    stage_ = Stage::kEnded;
  }
}

void Farewell::reach_untold(Clock::time_point now) {
  if (at_ >= untold_.size()) {
    pause_or_end(now);
    return;
  }
  stage_ = Stage::kReachingAgain;
  dialer_.begin(untold_[at_], deadline_, now);
}

void Farewell::forget_untold() {
  untold_.erase(untold_.begin() + static_cast<std::ptrdiff_t>(at_));
}

void Farewell::tell_again(std::size_t range, FrameKind kind, Clock::time_point now) {
  again_ = kind;
  exchange_.begin(OnLoss::kLeave);
  exchange_.ask(range, last_word(kind, context_.ranges[range]), RequestBody::kNone, FrameKind::kAck,
                now);
}

void Farewell::told_again(Clock::time_point now) {
  const std::size_t range = untold_[at_];
  if (!exchange_.is_answered(range)) {
    ++at_;
    reach_untold(now);
  } else if (again_ != kind_) {
    tell_again(range, FrameKind::kGoodbye, now);
  } else {
    forget_untold();
    reach_untold(now);
  }
}

void Farewell::tell_at_once() {
  exchange_.begin(OnLoss::kLeave);
  stage_ = Stage::kEnded;
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
