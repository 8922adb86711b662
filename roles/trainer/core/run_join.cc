#include "roles/trainer/core/run_join.h"

#include <algorithm>
#include <utility>

#include "run/outcome.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

// ------------------------------------------------------------------------------- opening all links

void Connecting::begin(std::chrono::seconds limit, std::string sentence, Clock::time_point now) {
  limit_ = limit;
  sentence_ = std::move(sentence);
  give_up_at_ = now + limit;
  notes_.begin(now);
  // Pauses begin with the shortest one again.
  context_.backoff.reset();
  resume_at_ = now;
  // A pause that has expired already: time() dials at once.
  stage_ = Stage::kPausing;
  time(now);
}

void Connecting::time(Clock::time_point now) {
  if (stage_ == Stage::kPausing && now >= resume_at_) {
    stage_ = Stage::kDialing;
    at_ = 0;
    missing_.clear();
    next(now);
  }
}

void Connecting::next(Clock::time_point now) {
  for (; at_ < context_.ranges.size(); ++at_) {
    if (!context_.ranges[at_].is_open()) {
      // clamp(): a deadline in the past still gets one attempt.
      dialer_.begin(at_, std::clamp(give_up_at_, now, now + attempt_limit(limit_)), now);
      return;
    }
    context_.note_end(context_.ranges[at_]);
  }
  all_tried(now);
}

void Connecting::dialed(Dialer::Result result, Clock::time_point now) {
  if (result == Dialer::Result::kUnderWay) {
    return;
  }
  if (result == Dialer::Result::kRefused) {
    // A refusal is permanent, so the other ps need not be asked.
    context_.failure = dialer_.failure();
    stage_ = Stage::kGivenUp;
    return;
  }
  const RangeSession& session = context_.ranges[at_];
  if (result == Dialer::Result::kReplaced) {
    begin_above(dialer_.replaced_by(), session.name() + ": " + dialer_.failure().what(), now);
    return;
  }
  if (result == Dialer::Result::kFailed) {
    missing_ += (missing_.empty() ? "" : ", ") + session.name() + ": " + dialer_.error().message();
  }
  context_.note_end(session);
  // Each round dials every missing range once, so one slow ps does not keep the others waiting for
  // more than one attempt.
  ++at_;
  next(now);
}

void Connecting::begin_above(std::uint64_t incarnation, std::string missing,
                             Clock::time_point now) {
  // The links that are open were opened by the old incarnation, which the ps are about to refuse.
  dialer_.give_up();
  context_.close_all();
  // The new incarnation has to be welcomed by all ps.
  context_.welcomed_by.clear();
  context_.out.add(TakeIncarnation{incarnation});
  missing_ = std::move(missing);
  all_tried(now);
}

void Connecting::all_tried(Clock::time_point now) {
  if (missing_.empty()) {
    stage_ = Stage::kOpen;
  } else if (context_.over) {
    stage_ = Stage::kGivenUp;
  } else if (now >= give_up_at_) {
    stage_ = Stage::kGivenUp;
    context_.failure = Failure(kLostPeers, sentence_ + seconds_text(limit_) + " for " + missing_);
  } else {
    if (notes_.is_due(now)) {
      context_.out.info("waits for " + missing_);
    }
    // The last round begins at the limit itself, so that the whole time is used.
    stage_ = Stage::kPausing;
    resume_at_ = std::min(give_up_at_, now + context_.backoff.next());
  }
}

// --------------------------------------------------------------------------------- joining the run

RunJoin::RunJoin(RunContext& context, Connecting& connecting, StepExchange& exchange,
                 net::Backoff pauses)
    : context_(context), connecting_(connecting), exchange_(exchange), pauses_(pauses) {}

void RunJoin::begin(Clock::time_point now) {
  pauses_.reset();
  failing_since_.reset();
  attempt(now);
}

void RunJoin::attempt(Clock::time_point now) {
  exchange_.begin(OnLoss::kStateLost);  // drops the requests of the previous attempt
  // Any state is accepted from here on: the run may have been restored since the last one.
  for (RangeSession& session : context_.ranges) {
    session.unpin();
  }
  was_over_ = context_.over;
  ends_ = false;
  stage_ = Stage::kConnecting;
  // All ps have been reached before, so a missing one is lost, and not about to start.
  connecting_.begin(context_.task.timeouts.peer, "waited ", now);
}

RunJoin::Status RunJoin::advance(Clock::time_point now) {
  while (!context_.failure) {
    switch (stage_) {
      case Stage::kConnecting:
        if (connecting_.is_under_way()) {
          return Status::kUnderWay;
        }
        connected(now);
        break;
      case Stage::kPausing:
        if (now < resume_at_) {
          return Status::kUnderWay;
        }
        attempt(now);
        break;
      case Stage::kNeedsState:
        return Status::kNeedsState;
      case Stage::kJoined:
        return Status::kJoined;
      case Stage::kRunOver:
        return Status::kRunOver;
      default:
        if (exchange_.is_state_lost()) {
          state_lost(now);
        } else if (exchange_.awaits_any()) {
          return Status::kUnderWay;
        } else {
          answered(now);
        }
    }
  }
  return Status::kFailed;
}

void RunJoin::connected(Clock::time_point now) {
  if (!connecting_.are_open() || (context_.over && (leads_ || !agree()))) {
    stage_ = Stage::kRunOver;  // no chief restores the ps any more
  } else if (leads_) {
    // From the last ps to ps 0: workers read the configuration from ps 0, so it comes last.
    at_ = context_.ranges.size() - 1;
    publish(now);
  } else {
    pull(Stage::kPulling, now);
  }
}

void RunJoin::publish(Clock::time_point now) {
  stage_ = Stage::kPublishing;
  exchange_.begin(OnLoss::kStateLost);
  exchange_.ask(at_, net::Publish{}.to_header(), RequestBody::kConfiguration, FrameKind::kAck, now);
}

void RunJoin::provided(std::uint64_t step, Clock::time_point now) {
  // Above every generation that a ps has reported, so that each ps accepts the restore.
  for (const RangeSession& session : context_.ranges) {
    newest_generation_ = std::max(newest_generation_, session.generation());
  }
  newest_generation_ = net::generation_after(newest_generation_, context_.incarnation);
  // The restored result has a new generation, and is still the result.
  if (ended_) {
    ended_ = newest_generation_;
  }
  state_step_ = step;
  send_best(/*then_restore=*/true, now);
}

// Sent before the state: if the chief is lost after that, all ps of the state have recorded it.
void RunJoin::send_best(bool then_restore, Clock::time_point now) {
  stage_ = Stage::kSendingBest;
  then_restore_ = then_restore;
  exchange_.begin(OnLoss::kStateLost);
  if (context_.best) {
    exchange_.ask_for_best(now);
  }
}

void RunJoin::restore(Clock::time_point now) {
  RangeSession& session = context_.ranges[at_];
  stage_ = Stage::kRestoring;
  exchange_.begin(OnLoss::kStateLost);
  // Also if the reply is lost: the next one is above it.
  session.set_generation(newest_generation_);
  exchange_.ask(at_,
                net::Restore{.step = state_step_,
                             .range_begin = session.range.begin,
                             .generation = newest_generation_,
                             .finished = ended_.has_value()}
                    .to_header(),
                RequestBody::kState, FrameKind::kAck, now);
}

// All ps hold one state. A ps that is lost from here on and comes back empty would wait for the
// chief, which is this trainer, before it answers a pull.
void RunJoin::pull_as_chief(Clock::time_point now) {
  for (RangeSession& session : context_.ranges) {
    session.pin();
  }
  pull(Stage::kPulling, now);
}

// With kPullingPrevious: asks the ps that are ahead of the slowest one for the previous step.
void RunJoin::pull(Stage stage, Clock::time_point now) {
  stage_ = stage;
  const std::uint64_t slowest =
      std::ranges::min_element(context_.ranges, {}, &RangeSession::step)->step();
  // Elastic: any part of the exchange may be missing at a lost ps.
  exchange_.begin(context_.elastic ? OnLoss::kJoinAgain : OnLoss::kRepeat);
  const bool concludes = holds_result() || ends_;
  for (const RangeSession& session : context_.ranges) {
    const bool asks_previous = stage == Stage::kPullingPrevious && session.step() > slowest;
    exchange_.ask(session.index(),
                  net::Pull{.configuration = context_.configuration,
                            .previous = asks_previous,
                            .concludes = concludes}
                      .to_header(),
                  RequestBody::kNone, FrameKind::kParameters, now);
  }
}

// Chief: the ps hold the state that this trainer has, whether or not all of them know that it is
// the result.
bool RunJoin::holds_result() const {
  return leads_ && ended_ && agree() && context_.ranges.front().generation() == *ended_;
}

// Fully synchronous: the previous chief ended the run, and was lost when only some ps had been
// notified. All hold the step that it judged. But if averages are the result, the ones that were
// notified have answered with these, which cannot be judged again.
bool RunJoin::is_half_ended() const {
  return context_.fully_synchronous && !result_.finished && exchange_.is_any_finished();
}

// Each ps that this stage sends to has answered.
void RunJoin::answered(Clock::time_point now) {
  if (stage_ == Stage::kPublishing) {
    if (at_ > 0) {
      --at_;
      publish(now);
    } else if (agree()) {
      // The ps hold one state already: a restarted chief goes on from it without a restore.
      send_best(/*then_restore=*/false, now);
    } else {
      stage_ = Stage::kNeedsState;
    }
  } else if (stage_ == Stage::kSendingBest && then_restore_) {
    // As when publishing, ps 0 comes last.
    at_ = context_.ranges.size() - 1;
    restore(now);
  } else if (stage_ == Stage::kSendingBest) {
    pull_as_chief(now);
  } else if (stage_ == Stage::kRestoring) {
    if (at_ > 0) {
      --at_;
      restore(now);
    } else {
      pull_as_chief(now);
    }
  } else {
    pulled(now);
  }
}

void RunJoin::pulled(Clock::time_point now) {
  result_ = exchange_.result();
  // Not fully synchronous: each ps makes steps of its own, so different steps are no fault.
  const bool is_one_step = result_.same_step || !context_.fully_synchronous;
  if (leads_ && agree() && !is_one_step && has_lost_steps()) {
    stage_ = Stage::kNeedsState;
    // A second attempt with the previous step would not help: the ps have moved since.
  } else if (stage_ == Stage::kPulling && agree() && !is_one_step) {
    pull(Stage::kPullingPrevious, now);
  } else if (leads_ && !ends_ && agree() && is_one_step && is_half_ended()) {
    ends_ = true;
    // This pull concludes the run, so all ps answer with the result.
    pull(Stage::kPulling, now);
  } else if (agree() && is_one_step) {
    finish();
  } else {
    // The ps disagree: a chief is restoring them, or a replaced process has answered.
    leave_behind();
    pause(now);
  }
}

// Fully synchronous: without a gradient of this trainer no ps gets more than one step ahead of
// another. A ps that is further behind has lost steps that the other ps, and trainers that were
// answered, go on from. (Elastic: the others go on while this trainer pulls.)
bool RunJoin::has_lost_steps() const {
  const auto [slowest, fastest] =
      std::ranges::minmax_element(context_.ranges, {}, &RangeSession::step);
  return context_.fully_synchronous && !context_.elastic && fastest->step() - slowest->step() > 1;
}

// A ps that answers with an older state than another may be a process that was replaced while it
// was disconnected. It would answer so forever, while its address leads to its replacement: close
// the link.
void RunJoin::leave_behind() {
  const net::Generation newest =
      std::ranges::max_element(context_.ranges, {}, &RangeSession::generation)->generation();
  for (const RangeSession& session : context_.ranges) {
    if (session.generation() < newest) {
      exchange_.leave(session.index());
    }
  }
}

void RunJoin::finish() {
  for (RangeSession& session : context_.ranges) {
    session.pin();
  }
  // The next restore must be above it, even if this ps is lost.
  newest_generation_ = std::max(newest_generation_, result_.generation);
  result_.joined = true;
  ended_ = result_.finished ? std::optional(result_.generation) : std::nullopt;
  context_.out.add(NameGeneration{result_.generation});
  stage_ = Stage::kJoined;
}

void RunJoin::state_lost(Clock::time_point now) {
  // The next welcomes show what each host holds by then.
  context_.close_all();
  exchange_.begin(OnLoss::kStateLost);
  if (was_over_) {
    stage_ = Stage::kRunOver;  // a ps that holds nothing, and never will
  } else {
    pause(now);
  }
}

// The chief is restoring. If the chief has gone, the ps notice and notify the trainers.
void RunJoin::pause(Clock::time_point now) {
  const std::chrono::seconds limit = context_.task.timeouts.start;
  // The limit counts from the first failure, even if later attempts get further.
  failing_since_ = failing_since_.value_or(now);
  if (now - *failing_since_ >= limit) {
    context_.failure = Failure(kLostPeers, "could not join the run for " + seconds_text(limit) +
                                               ": each time a ps was lost, or "
                                               "the ps held different states");
    return;
  }
  stage_ = Stage::kPausing;
  resume_at_ = now + pauses_.next();
}

bool RunJoin::agree() const {
  // An empty ps agrees with none, even if the generations are the same.
  const net::Generation generation = context_.ranges.front().generation();
  return std::ranges::all_of(context_.ranges, [generation](const RangeSession& session) {
    return session.state() != net::ShardState::kEmpty && session.generation() == generation;
  });
}

}  // namespace disttf::roles
