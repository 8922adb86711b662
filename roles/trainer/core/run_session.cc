#include "roles/trainer/core/run_session.h"

#include <algorithm>
#include <utility>

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

RunSession::RunSession(const Task& task, std::mt19937_64 random)
    : context_{.task = task,
               .incarnation = task.incarnation,
               .backoff = net::Backoff(std::mt19937_64(random()))},
      join_(context_, connecting_, exchange_, net::Backoff(std::mt19937_64(random()))) {
  context_.ranges.reserve(task.cluster.ps.size());
  for (std::size_t index = 0; index < task.cluster.ps.size(); ++index) {
    context_.ranges.emplace_back(task, index);
  }
}

void RunSession::prepare(const Run& run) {
  context_.fully_synchronous = run.fully_synchronous;
  context_.elastic = run.elastic;
  context_.configuration = run.configuration;
  for (RangeSession& session : context_.ranges) {
    session.range = math::shard_range(run.size, session.index(), context_.ranges.size());
  }
}

// -------------------------------------------------------------------------------- operations begin

void RunSession::begin(Operation operation) {
  // Whatever an earlier operation still waits for is abandoned; its links stay open.
  dialer_.give_up();
  connecting_.stop();
  shutdown_protocol_.stop();
  joins_ = false;
  reconnects_ = false;
  context_.failure.reset();
  context_.is_other_configuration = false;
  context_.out.clear();
  operation_ = operation;
  outcome_ = Outcome::kUnderWay;
}

void RunSession::begin_connect(Clock::time_point now) {
  begin(Operation::kConnect);
  exchange_.begin(OnLoss::kStateLost);
  connecting_.begin(context_.task.timeouts.start, "waited ", now);
  advance(now);
}

void RunSession::begin_get_config(Clock::time_point now) {
  begin(Operation::kGetConfig);
  ask_for_text(0, FrameKind::kGetConfig, FrameKind::kConfig, now);
  advance(now);
}

void RunSession::begin_status(std::size_t range, Clock::time_point now) {
  begin(Operation::kStatus);
  asked_ = range;
  ask_for_text(range, FrameKind::kStatus, FrameKind::kStatusReply, now);
  advance(now);
}

void RunSession::begin_pull(Clock::time_point now) {
  begin(Operation::kPull);
  awaiting_ = false;
  broken_ = false;
  begin_join(now);
  advance(now);
}

FrameHeader RunSession::push_header(const RangeSession& session, std::uint64_t sequence,
                                    bool keep_snapshot) {
  // The step of each ps by itself: if not every gradient counts, the steps of the ps may differ.
  return net::PushPull{.step = session.step(),
                       .push = sequence,
                       .keep_snapshot = keep_snapshot,
                       .range_begin = session.range.begin,
                       .generation = session.generation()}
      .to_header();
}

FrameHeader RunSession::push_header_ahead(std::size_t range, std::uint64_t sequence,
                                          bool keep_snapshot) {
  RangeSession& session = context_.ranges[range];
  FrameHeader header = push_header(session, sequence, keep_snapshot);
  // The request is numbered now, so that parts that are sent ahead belong to the push itself.
  header.request_id = session.reserve_request_id();
  return header;
}

void RunSession::begin_push_pull(std::uint64_t sequence, bool keep_snapshot,
                                 Clock::time_point now) {
  begin(Operation::kPushPull);
  exchange_.begin(patience());
  for (const RangeSession& session : context_.ranges) {
    exchange_.ask(session.index(), push_header(session, sequence, keep_snapshot),
                  RequestBody::kGradient, FrameKind::kParameters, now);
  }
  advance(now);
}

void RunSession::begin_peek(Clock::time_point now) {
  begin(Operation::kPeek);
  // A peek names no state: it takes what each ps holds, and ends the run there (`concludes`).
  exchange_.begin(patience());
  for (const RangeSession& session : context_.ranges) {
    exchange_.ask(session.index(),
                  net::Pull{.configuration = context_.configuration, .concludes = true}.to_header(),
                  RequestBody::kNone, FrameKind::kParameters, now);
  }
  advance(now);
}

void RunSession::begin_send_best(Clock::time_point now) {
  begin(Operation::kSendBest);
  exchange_.begin(OnLoss::kRepeat);
  exchange_.ask_for_best(now);
  advance(now);
}

void RunSession::push(std::uint64_t micro_batch) {
  for (RangeSession& session : context_.ranges) {
    if (awaiting_ && exchange_.is_answered(session.index())) {
      continue;  // it has made this step, and would count the gradient for a later one
    }
    FrameHeader header = net::Push{.step = session.step(),
                                   .micro_batch = micro_batch,
                                   .range_begin = session.range.begin,
                                   .generation = session.generation()}
                             .to_header();
    // One missing push is found by begin_await_step(), which joins again: a partial set of pushes
    // is useless.
    broken_ = broken_ || !session.is_open() || !session.number(header);
    if (!broken_) {
      context_.out.add(
          SendRequest{.range = session.index(), .header = header, .body = RequestBody::kGradient});
    }
  }
}

void RunSession::begin_await_step(std::uint64_t sequence, bool keep_snapshot,
                                  Clock::time_point now) {
  if (std::exchange(broken_, false)) {
    begin(Operation::kAwaitStep);
    join_again(now);
  } else if (awaiting_) {
    // kNeedsWork does not end the exchange: its requests are still outstanding.
    outcome_ = Outcome::kUnderWay;
    exchange_.forget_work();
  } else {
    begin(Operation::kAwaitStep);
    awaiting_ = true;
    exchange_.begin(patience(), /*takes_work=*/true);
    for (const RangeSession& session : context_.ranges) {
      exchange_.ask(session.index(),
                    net::AwaitStep{.step = session.step(),
                                   .push = sequence,
                                   .keep_snapshot = keep_snapshot,
                                   .generation = session.generation()}
                        .to_header(),
                    RequestBody::kNone, FrameKind::kParameters, now);
    }
  }
  advance(now);
}

void RunSession::begin_await_end(Clock::time_point now) {
  begin(Operation::kAwaitEnd);
  shutdown_protocol_.begin_leaving(now);
  advance(now);
}

void RunSession::begin_fetch_final(Clock::time_point now) {
  begin(Operation::kFetchFinal);
  exchange_.begin(OnLoss::kLeave);
  shutdown_protocol_.begin_fetching(now);
  advance(now);
}

void RunSession::begin_await_others(Clock::time_point now) {
  begin(Operation::kAwaitOthers);
  // Set if a lost ps is restored to another state meanwhile.
  reply_.joined = false;
  shutdown_protocol_.say_goodbye(now);
  advance(now);
}

void RunSession::begin_shutdown(Clock::time_point now) {
  begin(Operation::kShutdown);
  shutdown_protocol_.begin_notifying(now);
  advance(now);
}

void RunSession::announce_end() {
  begin(Operation::kShutdown);
  // No answer is awaited: the process ends because of a signal.
  shutdown_protocol_.notify_at_once();
  end(Outcome::kDone);
}

// ------------------------------------------------------------------------------------ what happens

void RunSession::dialed(std::size_t range, std::uint64_t attempt, const DialAnswer& answer,
                        Clock::time_point now) {
  const Dialer::Result result = dialer_.dialed(range, attempt, answer, now);
  if (result == Dialer::Result::kUnderWay) {
    return;
  }
  // Only one part dials at a time.
  if (connecting_.is_under_way()) {
    connecting_.dialed(result, now);
  } else if (shutdown_protocol_.dials()) {
    shutdown_protocol_.dialed(range, result, now);
  } else {
    exchange_.dialed(range, result, now);
  }
  advance(now);
}

void RunSession::sent(std::size_t range, Clock::time_point now) {
  if (outcome_ == Outcome::kUnderWay) {
    exchange_.sent(range, now);
  }
}

ReplyPlan RunSession::header(std::size_t range, const FrameHeader& header, Clock::time_point now) {
  if (!reads(range)) {
    return ReplyPlan::kNothing;
  }
  const ReplyPlan plan = exchange_.header(range, header, now);
  if (plan == ReplyPlan::kNothing) {
    advance(now);
  }
  return plan;
}

void RunSession::body(std::size_t range, Clock::time_point now) {
  exchange_.body(range, now);
  advance(now);
}

void RunSession::refused(std::size_t range, const net::Refusal& refusal, Clock::time_point now) {
  if (outcome_ != Outcome::kUnderWay) {
    return;
  }
  Failure failure = context_.failure_of(range, refusal);
  if (exchange_.leaves()) {  // when the run is over, refusals do not matter
    if (operation_ == Operation::kShutdown) {
      context_.out.warn(failure.what());
    }
    exchange_.leave(range);
  } else {
    context_.failure = std::move(failure);
  }
  advance(now);
}

void RunSession::lost(std::size_t range, std::error_code error, Clock::time_point now) {
  if (outcome_ != Outcome::kUnderWay) {
    context_.ranges[range].close();
    // A link that breaks between operations is found when it is used next; elastic pushes are not
    // answered, so they must remember it.
    broken_ = broken_ || context_.elastic;
    return;
  }
  exchange_.lost(range, error, now);
  advance(now);
}

void RunSession::record_incarnation(std::uint64_t by, Clock::time_point now) {
  // Once connected, a higher incarnation is that of a newer process, which takes precedence.
  if (outcome_ == Outcome::kUnderWay && operation_ == Operation::kConnect &&
      by > context_.incarnation) {
    connecting_.begin_above(by, "the ps, some of which have recorded another process of this task",
                            now);
    advance(now);
  }
}

void RunSession::is_replaced(std::size_t ps, net::Generation generation, Clock::time_point now) {
  // While joining, each welcome reports the state anyway.
  if (outcome_ != Outcome::kUnderWay || joins_) {
    return;
  }
  for (const RangeSession& session : context_.ranges) {
    // The generation is compared because the report may be older than the link.
    if (session.is_open() && session.host().index == ps && session.generation() == generation) {
      // Closed here, since that process may go on answering from its old state.
      context_.close(session.index());
      exchange_.lost(session.index(), std::make_error_code(std::errc::connection_reset), now);
    }
  }
  advance(now);
}

void RunSession::time(Clock::time_point now) {
  if (outcome_ != Outcome::kUnderWay) {
    return;
  }
  // Each part ignores the time unless it has something under way.
  connecting_.time(now);
  exchange_.time(now);
  shutdown_protocol_.time(now);
  advance(now);
}

void RunSession::forgive(Clock::duration missed) {
  connecting_.forgive(missed);
  exchange_.forgive(missed);
  join_.forgive(missed);
  shutdown_protocol_.forgive(missed);
  if (stalled_since_) {
    *stalled_since_ += missed;
  }
}

void RunSession::provided(std::uint64_t step, Clock::time_point now) {
  if (outcome_ == Outcome::kNeedsState) {
    outcome_ = Outcome::kUnderWay;
    join_.provided(step, now);
    advance(now);
  }
}

Clock::time_point RunSession::deadline() const noexcept {
  if (outcome_ != Outcome::kUnderWay) {
    return Clock::time_point::max();
  }
  auto deadline =
      std::min({connecting_.deadline(), exchange_.deadline(), shutdown_protocol_.deadline()});
  return joins_ ? std::min(deadline, join_.deadline()) : deadline;
}

// -------------------------------------------------------------------------------- operations go on

void RunSession::end(Outcome outcome) noexcept {
  outcome_ = outcome;
  dialer_.give_up();
}

void RunSession::advance(Clock::time_point now) {
  if (outcome_ != Outcome::kUnderWay) {
    return;
  }
  if (context_.is_other_configuration) {
    joins_ = false;
    context_.close_all();
    end(Outcome::kOtherConfiguration);
    return;
  }
  if (joins_) {
    advance_join(now);
  }
  // Either joining goes on, or it has ended the operation.
  if (joins_ || outcome_ != Outcome::kUnderWay) {
    return;
  }
  if (context_.failure) {
    end(Outcome::kFailed);
    return;
  }
  switch (operation_) {
    case Operation::kConnect:
      if (!connecting_.is_under_way()) {
        // From here on a refusal because of another process means that this one was replaced.
        context_.has_connected = true;
        end(context_.over ? Outcome::kRunOver : Outcome::kDone);
      }
      return;
    case Operation::kGetConfig:
      advance_config(now);
      return;
    case Operation::kPushPull:
    case Operation::kAwaitStep:
    case Operation::kPeek:
    case Operation::kAwaitOthers:
      advance_exchange(now);
      return;
    case Operation::kAwaitEnd:
    case Operation::kFetchFinal:
    case Operation::kShutdown:
      if (shutdown_protocol_.advance(now)) {
        end(Outcome::kDone);
      }
      return;
    case Operation::kSendBest:
      // A lost ps is no failure here: the next operation finds the loss, and joining sends the best
      // evaluation again.
      if (exchange_.is_state_lost() || !exchange_.awaits_any()) {
        exchange_.close_unfinished();
        end(Outcome::kDone);
      }
      return;
    case Operation::kStatus:
      if (!exchange_.awaits(asked_)) {
        has_text_ = exchange_.is_answered(asked_);
        end(Outcome::kDone);
      }
      return;
    case Operation::kNone:
    case Operation::kPull:
      return;
  }
}

void RunSession::advance_join(Clock::time_point now) {
  switch (join_.advance(now)) {
    case RunJoin::Status::kUnderWay:
      return;
    case RunJoin::Status::kNeedsState:
      outcome_ = Outcome::kNeedsState;
      return;
    case RunJoin::Status::kRunOver:
      end(Outcome::kRunOver);
      return;
    case RunJoin::Status::kFailed:
      end(Outcome::kFailed);
      return;
    case RunJoin::Status::kJoined:
      break;
  }
  joins_ = false;
  // The result was restored: GOODBYE again, to the ps that replaced the lost ones as well.
  if (operation_ == Operation::kAwaitOthers && join_.result().finished) {
    shutdown_protocol_.say_goodbye(now);
  } else {
    reply_ = join_.result();
    end(Outcome::kDone);
  }
}

void RunSession::advance_exchange(Clock::time_point now) {
  if (exchange_.is_state_lost()) {
    join_again(now);
    advance_join(now);
  } else if (!exchange_.work().empty()) {
    // No end of the operation: the requests stay outstanding while this trainer computes.
    outcome_ = Outcome::kNeedsWork;
  } else if (exchange_.awaits_any()) {
    return;
  } else if (operation_ == Operation::kAwaitOthers) {
    end(Outcome::kDone);
  } else {
    reply_ = exchange_.result();
    // Elastic: this trainer had nothing to compute, and the others went on without it. Fully
    // synchronous: a ps has already made the next step, with a gradient that this trainer pushed
    // before the ps was rolled back to this step. A gradient must not be computed from two steps. A
    // peek names no state, so its answers may be from two.
    const bool needs_one_step =
        operation_ == Operation::kAwaitStep ||
        ((operation_ == Operation::kPushPull || operation_ == Operation::kPeek) &&
         context_.fully_synchronous);
    if ((needs_one_step && !reply_.same_step) || !reply_.same_generation) {
      begin_join(now);
      advance_join(now);
      return;
    }
    awaiting_ = false;
    stalled_since_.reset();
    if (operation_ == Operation::kPeek && reply_.finished) {
      // Recorded, so that a restarted ps is restored to the result.
      join_.has_ended(reply_.generation);
    }
    end(Outcome::kDone);
  }
}

void RunSession::begin_join(Clock::time_point now) {
  joins_ = true;
  awaiting_ = false;
  join_.begin(now);
}

void RunSession::join_again(Clock::time_point now) {
  // Each join may succeed, so the repetitions are limited by time.
  if (is_stalled(now)) {
    context_.failure = Failure(kLostPeers, "has rejoined the run repeatedly for " +
                                               seconds_text(context_.task.timeouts.start) +
                                               ", and each time a ps was lost before it answered");
    exchange_.close_unfinished();
    return;
  }
  if (operation_ != Operation::kPeek) {
    context_.out.warn(
        "a ps was lost, or does not hold this step's state any more; joining the run again");
  }
  exchange_.close_unfinished();
  // All links are opened again: an open link may lead to a process that was suspended and has been
  // replaced, with another state whose generation may have the same number.
  context_.close_all();
  begin_join(now);
}

void RunSession::ask_for_text(std::size_t range, FrameKind question, FrameKind answer,
                              Clock::time_point now) {
  has_text_ = false;
  exchange_.begin(OnLoss::kStateLost);
  exchange_.ask(range, {.kind = question}, RequestBody::kNone, answer, now);
}

void RunSession::advance_config(Clock::time_point now) {
  if (reconnects_) {
    if (connecting_.is_under_way()) {
      return;
    }
    reconnects_ = false;
    if (context_.over) {
      end(Outcome::kRunOver);
      return;
    }
    ask_for_text(0, FrameKind::kGetConfig, FrameKind::kConfig, now);
  }
  // Or the ps reported the end of the run before it had a configuration.
  if (exchange_.is_state_lost()) {
    context_.close(0);
    if (is_stalled(now)) {
      context_.failure = Failure(
          kLostPeers, "ps 0 was reached, and lost again before it sent the configuration, for " +
                          seconds_text(context_.task.timeouts.start));
      end(Outcome::kFailed);
      return;
    }
    exchange_.begin(OnLoss::kStateLost);
    reconnects_ = true;
    connecting_.begin(context_.task.timeouts.peer, "ps 0 was lost before training began; waited ",
                      now);
  } else if (!exchange_.awaits(0)) {
    has_text_ = true;
    stalled_since_.reset();
    end(Outcome::kDone);
  }
}

// Returns whether what has just failed has failed for Timeouts::start without success.
bool RunSession::is_stalled(Clock::time_point now) {
  // Kept from the first failure until a success resets it.
  stalled_since_ = stalled_since_.value_or(now);
  return now - *stalled_since_ >= context_.task.timeouts.start;
}

}  // namespace disttf::roles
