#include "roles/trainer/core/step_exchange.h"

#include <algorithm>
#include <string>
#include <utility>

#include "run/outcome.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

// The longest pause before connecting again to a range with two hosts: the other host is up, and
// about to become its primary.
constexpr std::chrono::milliseconds kLongestPause{100};

bool is_text(FrameKind kind) {
  return kind == FrameKind::kConfig || kind == FrameKind::kStatusReply;
}

std::size_t most_bytes_of_text(FrameKind kind) {
  return kind == FrameKind::kConfig ? net::kMaxConfigBodyBytes : net::kMaxControlBodyBytes;
}

}  // namespace

// Returns whether this is a ps's answer to a pull that names a configuration which the ps does not
// train.
bool StepExchange::is_other_configuration(const Item& item, const FrameHeader& header) {
  net::Pull pull;
  return header.kind == FrameKind::kConfig && header.body_size <= net::kMaxConfigBodyBytes &&
         !net::Config{}.from_header(header) && !pull.from_header(item.request) &&
         pull.configuration != 0;
}

StepExchange::StepExchange(RunContext& context, Dialer& dialer)
    : context_(context), dialer_(dialer), items_(context.task.cluster.ps.size()) {}

void StepExchange::begin(OnLoss on_loss, bool takes_work) {
  for (Item& item : items_) {
    item.state = State::kUnasked;
    item.is_answered = false;
  }
  // Work of an earlier exchange names micro-batches of another step.
  work_.clear();
  on_loss_ = on_loss;
  takes_work_ = takes_work;
  state_lost_ = false;
}

void StepExchange::ask(std::size_t range, const FrameHeader& request, RequestBody body,
                       FrameKind expected, Clock::time_point now) {
  Item& item = items_[range];
  item.state = State::kWaiting;
  item.request = request;
  item.body = body;
  item.expected = expected;
  item.is_answered = false;
  item.is_configuration = false;
  item.is_failing = false;
  item.is_nonsense = false;
  // A reply of the previous step must not be taken for this one's.
  item.reply = {};
  send(range, now);
}

void StepExchange::ask_for_best(Clock::time_point now) {
  const BestEvaluation best = *context_.best;
  for (const RangeSession& session : context_.ranges) {
    ask(session.index(), net::Best{.step = best.step, .loss = best.loss}.to_header(),
        RequestBody::kNone, FrameKind::kBest, now);
  }
}

void StepExchange::send(std::size_t range, Clock::time_point now) {
  Item& item = items_[range];
  RangeSession& session = context_.ranges[range];
  if (!session.is_open()) {
    // The caller need not know: the loss is handled as if the link had broken while waiting.
    lost(range, std::make_error_code(std::errc::not_connected), now);
    return;
  }
  FrameHeader header = item.request;
  if (!session.number(header)) {
    close_and_lose(range, std::make_error_code(std::errc::not_connected), now);
    return;
  }
  item.state = State::kWaiting;
  // Each attempt has a number of its own, so that an answer to an earlier one is recognized.
  item.awaited_id = header.request_id;
  // sent() moves this once the body has been sent.
  item.times_out_at = now + context_.task.timeouts.heartbeat_timeout;
  context_.out.add(SendRequest{.range = range, .header = header, .body = item.body});
}

// A large body may have taken some time to send.
void StepExchange::sent(std::size_t range, Clock::time_point now) {
  if (items_[range].state == State::kWaiting) {
    items_[range].times_out_at = now + context_.task.timeouts.heartbeat_timeout;
  }
}

ReplyPlan StepExchange::header(std::size_t range, const FrameHeader& header,
                               Clock::time_point now) {
  Item& item = items_[range];
  // This comes first: a refusal may take the place of any answer.
  if (!net::RefusedFrame{}.from_header(header)) {
    return ReplyPlan::kRefusal;
  }
  net::Work work;
  const bool is_work = header.body_size == 0 && !work.from_header(header);
  if (is_work || net::is_bodiless<net::Heartbeat>(header)) {
    // It may belong to the previous step, whose answer has overtaken it in memory.
    if (is_work && takes_work_ && work.request_id == item.awaited_id) {
      work_.push_back(work.micro_batch);
    }
    item.times_out_at = now + context_.task.timeouts.heartbeat_timeout;
    // Proof of life ends the time since a broken link, but not since an invalid frame.
    item.is_failing = item.is_failing && item.is_nonsense;
    return ReplyPlan::kNothing;
  }
  // A ps that has answered has nothing to send but heartbeats.
  if (is_watched(range)) {
    close_and_lose(range, net::WireError::kUnexpected, now);
    return ReplyPlan::kNothing;
  }
  // An answer to another request, such as a duplicate of an older one: the two ends are out of
  // sync, and only a new connection is certain to fix that.
  const bool is_answer = header.request_id == item.awaited_id;
  // FENCED for an older request is stale, and handled as unexpected below.
  if (is_answer && net::is_bodiless<net::Fenced>(header)) {
    fenced(range);
    return ReplyPlan::kNothing;
  }
  if (is_answer && is_other_configuration(item, header)) {
    item.is_configuration = true;
    item.state = State::kReading;
    return ReplyPlan::kText;
  }
  if (!is_answer || header.kind != item.expected) {
    close_and_lose(range, net::WireError::kUnexpected, now);
    return ReplyPlan::kNothing;
  }
  if (header.kind == FrameKind::kParameters) {
    if (const auto error = item.reply.from_header(header)) {
      close_and_lose(range, error, now);
      return ReplyPlan::kNothing;
    }
    // A correct ps fences instead of answering so.
    const bool names_state = item.request.generation != 0;
    if (names_state && item.reply.generation != item.request.generation) {
      fenced(range);
      return ReplyPlan::kNothing;
    }
    item.state = State::kReading;
    return ReplyPlan::kParameters;
  }
  net::Best best;
  const bool is_best = header.kind == FrameKind::kBest;
  if (const auto error = is_best ? best.from_header(header) : net::check_bare(header)) {
    close_and_lose(range, error, now);
    return ReplyPlan::kNothing;
  }
  // A ps answers with the newest evaluation that it has recorded, so a chief learns of those of its
  // predecessor.
  if (is_best && context_.best) {
    context_.best->learn({.step = best.step, .loss = best.loss});
  }
  if (is_text(header.kind)) {
    // The size comes from the ps, so the memory for it is bounded.
    if (header.body_size > most_bytes_of_text(header.kind)) {
      close_and_lose(range, net::WireError::kBodyTooLarge, now);
      return ReplyPlan::kNothing;
    }
    item.state = State::kReading;
    return ReplyPlan::kText;
  }
  if (header.body_size != 0) {
    close_and_lose(range, net::WireError::kBadBody, now);
    return ReplyPlan::kNothing;
  }
  answered(range, now);
  return ReplyPlan::kNothing;
}

void StepExchange::body(std::size_t range, Clock::time_point now) {
  Item& item = items_[range];
  // The exchange was left while the body was being read.
  if (item.state != State::kReading) {
    return;
  }
  if (std::exchange(item.is_configuration, false)) {
    // The trainer connects again once it has the other configuration.
    leave(range);
    context_.is_other_configuration = true;
  } else {
    answered(range, now);
  }
}

void StepExchange::answered(std::size_t range, Clock::time_point now) {
  Item& item = items_[range];
  item.is_failing = false;
  item.is_nonsense = false;
  done(item, now);
  if (item.expected == FrameKind::kParameters) {
    RangeSession& session = context_.ranges[range];
    const bool is_push = item.request.kind == FrameKind::kPushPull;
    session.received(item.reply, is_push ? item.request.sequence : 0);
    // A gradient that came too late was not used.
    if (is_push && !was_dropped(range)) {
      session.acknowledge();
    }
  }
}

void StepExchange::done(Item& item, Clock::time_point now) noexcept {
  item.state = State::kDone;
  item.is_answered = true;
  item.beat_at = now + kHeartbeatInterval;
  item.times_out_at = now + context_.task.timeouts.heartbeat_timeout;
}

// The next welcome reports what the ps holds now.
void StepExchange::fenced(std::size_t range) {
  context_.close(range);
  items_[range].state = State::kLeft;
  items_[range].is_answered = false;
  // An exchange that goes on without lost ps has no state to lose.
  state_lost_ = state_lost_ || !leaves();
}

void StepExchange::close_and_lose(std::size_t range, std::error_code error, Clock::time_point now) {
  context_.close(range);
  lost(range, error, now);
}

void StepExchange::lost(std::size_t range, std::error_code error, Clock::time_point now) {
  RangeSession& session = context_.ranges[range];
  session.close();
  Item& item = items_[range];
  const bool was_done = is_watched(range);
  // A loss that no one waits for needs no action.
  if (!was_done && item.state != State::kLost && item.state != State::kDialing && !awaits(range)) {
    return;
  }
  if (on_loss_ != OnLoss::kRepeat) {
    if (on_loss_ == OnLoss::kJoinAgain) {
      context_.out.warn(session.name() + " was lost (" + error.message() + ")");
    }
    item.state = State::kLeft;
    state_lost_ = state_lost_ || !leaves();
    return;
  }
  if (was_done) {
    // It answered from that state, and another state does not match the other answers.
    session.pin();
  }
  const bool was_lost = item.state == State::kLost || item.state == State::kDialing;
  item.state = State::kLost;
  if (!was_lost && error.category() == net::wire_category() && !item.is_nonsense) {
    item.is_nonsense = true;
    item.is_failing = false;  // the time starts here
  }
  if (!was_lost && !std::exchange(item.is_failing, true)) {
    item.lost_since = now;
    item.notes.begin(now);
    context_.out.warn(session.name() + " was lost (" + error.message() + "); connecting again");
    context_.backoff.reset();
  } else if (item.notes.is_due(now)) {
    context_.out.info("waits for " + session.name() + ": " + error.message());
  }
  item.error = error;
  const auto longest = context_.replicated ? kLongestPause : net::Backoff::kLongest;
  // Also retry exactly when the ps is to be declared dead: if this trainer reported that later,
  // another task would do so first.
  item.retry_at =
      std::min(now + std::min(context_.backoff.next(), longest), std::max(now, given_up_at(item)));
}

// Returns when a lost ps is declared dead.
Clock::time_point StepExchange::given_up_at(const Item& item) const {
  return item.lost_since + context_.task.timeouts.peer;
}

void StepExchange::dialed(std::size_t range, Dialer::Result result, Clock::time_point now) {
  Item& item = items_[range];
  // The dial was abandoned meanwhile, so its result does not matter.
  if (item.state != State::kDialing) {
    return;
  }
  switch (result) {
    case Dialer::Result::kUnderWay:
      return;
    case Dialer::Result::kOpen:
      context_.note_end(context_.ranges[range]);
      is_back(range, now);
      return;
    case Dialer::Result::kOtherState:
      // The ps is up, but with another state or none: repeating the request is of no use.
      context_.close(range);
      item.state = State::kLeft;
      state_lost_ = true;
      return;
    case Dialer::Result::kRefused:
    case Dialer::Result::kReplaced:  // only before all are connected
      context_.failure = dialer_.failure();
      return;
    case Dialer::Result::kFailed:
      lost(range, dialer_.error(), now);
      return;
  }
}

void StepExchange::is_back(std::size_t range, Clock::time_point now) {
  const auto gone =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - items_[range].lost_since);
  context_.out.info(context_.ranges[range].host_name() + " is back after " +
                    std::to_string(gone.count()) + " ms");
  // If the ps has answered already, its state suffices: the dial has checked that it is still the
  // pinned one.
  if (items_[range].is_answered) {
    done(items_[range], now);
  } else {
    send(range, now);
  }
}

void StepExchange::leave(std::size_t range) {
  // Closed, since an answer on its way must not be taken for that of a later request.
  context_.close(range);
  items_[range].state = State::kLeft;
  items_[range].is_answered = false;
}

void StepExchange::leave_timed_out() {
  for (std::size_t range = 0; range < items_.size(); ++range) {
    if (reads(range)) {
      leave(range);
    }
  }
}

void StepExchange::leave_lost() {
  on_loss_ = OnLoss::kLeave;
  for (std::size_t range = 0; range < items_.size(); ++range) {
    Item& item = items_[range];
    const bool is_lost = item.state == State::kLost || item.state == State::kDialing;
    // An answer that has arrived counts, though its link is gone.
    if (is_lost && item.is_answered) {
      context_.close(range);
      item.state = State::kDone;
    } else if (is_lost) {
      leave(range);
    }
  }
  dialer_.give_up();
}

void StepExchange::close_unfinished() {
  for (std::size_t range = 0; range < items_.size(); ++range) {
    if (awaits(range)) {
      leave(range);
    }
  }
  dialer_.give_up();
}

void StepExchange::time(Clock::time_point now) {
  for (std::size_t range = 0; range < items_.size(); ++range) {
    if (reads(range) && now >= items_[range].times_out_at) {
      close_and_lose(range, std::make_error_code(std::errc::timed_out), now);
    } else if (is_watched(range) && now >= items_[range].beat_at) {
      beat(range, now);
    }
  }
  // A ps that is being dialed is not declared dead: the result of that attempt comes first.
  for (std::size_t range = 0; range < items_.size(); ++range) {
    const Item& item = items_[range];
    if (item.state == State::kLost && now >= given_up_at(item)) {
      context_.failure = Failure(
          kLostPeers, context_.ranges[range].name() +
                          (item.is_nonsense ? " has answered nothing that can be used for "
                                            : " has been gone for ") +
                          seconds_text(context_.task.timeouts.peer) + ": " + item.error.message());
      return;
    }
  }
  retry_one(now);
}

// A link to a machine that has gone breaks only when something is sent over it; a suspended ps does
// not return the heartbeat.
void StepExchange::beat(std::size_t range, Clock::time_point now) {
  items_[range].beat_at = now + kHeartbeatInterval;
  context_.out.add(SendRequest{.range = range, .header = net::Heartbeat{}.to_header()});
}

// Retries the ps that has been due for longest. One at a time: frames of the others are to be
// handled before the next dial.
void StepExchange::retry_one(Clock::time_point now) {
  const auto due = [now](const Item& item) {
    return item.state == State::kLost && now >= item.retry_at;
  };
  const auto earlier = [&due](const Item& one, const Item& other) {
    return due(one) && (!due(other) || one.retry_at < other.retry_at);
  };
  const auto first = std::ranges::min_element(items_, earlier);
  // One dial at a time, as the shell waits for each.
  if (dialer_.range() || !due(*first)) {
    return;
  }
  first->state = State::kDialing;
  dialer_.begin(static_cast<std::size_t>(first - items_.begin()),
                std::min(given_up_at(*first), now + attempt_limit(context_.task.timeouts.peer)),
                now);
}

void StepExchange::forgive(Clock::duration missed) noexcept {
  for (Item& item : items_) {
    item.times_out_at += missed;
    item.lost_since += missed;
    item.notes.forgive(missed);
  }
}

Clock::time_point StepExchange::deadline() const noexcept {
  auto deadline = Clock::time_point::max();
  for (std::size_t range = 0; range < items_.size(); ++range) {
    const Item& item = items_[range];
    if (reads(range)) {
      deadline = std::min(deadline, item.times_out_at);
    }
    if (item.state == State::kLost) {
      // While another ps is being dialed, this one is not: only the end of its time is a deadline.
      deadline = std::min(deadline, dialer_.range() ? given_up_at(item) : item.retry_at);
    } else if (is_watched(range)) {
      deadline = std::min(deadline, item.beat_at);
    }
  }
  return deadline;
}

bool StepExchange::awaits(std::size_t range) const noexcept {
  const Item& item = items_[range];
  return item.state == State::kWaiting || item.state == State::kReading ||
         // A ps that was lost after its answer does not hold up the result.
         (!item.is_answered && (item.state == State::kLost || item.state == State::kDialing));
}

bool StepExchange::awaits_any() const noexcept {
  for (std::size_t range = 0; range < items_.size(); ++range) {
    if (awaits(range)) {
      return true;
    }
  }
  return false;
}

bool StepExchange::reads_any() const noexcept {
  return std::ranges::any_of(items_,
                             [](const Item& item) { return item.state == State::kWaiting; });
}

bool StepExchange::is_any_answered() const noexcept {
  return std::ranges::any_of(items_, [](const Item& item) { return item.is_answered; });
}

bool StepExchange::is_any_finished() const noexcept {
  return std::ranges::any_of(items_, [](const Item& item) { return item.reply.finished; });
}

StepResult StepExchange::result() const {
  const net::Parameters& first = items_.front().reply;
  StepResult result{.step = first.step,
                    .generation = first.generation,
                    .finished = first.finished,
                    .share = first.share};
  for (std::size_t range = 0; range < items_.size(); ++range) {
    // Not fully synchronous: each ps makes steps of its own, and callers ignore same_step.
    result.same_step = result.same_step && items_[range].reply.step == result.step;
    result.same_generation =
        result.same_generation && items_[range].reply.generation == result.generation;
    result.counts_from = std::max(result.counts_from, items_[range].reply.counts_from);
    result.dropped += was_dropped(range) ? 1U : 0U;
    // Fully synchronous: the chief may have ended the run at only some of the ps before it was
    // lost.
    result.finished =
        result.finished && (items_[range].reply.finished || !context_.fully_synchronous);
  }
  return result;
}

}  // namespace disttf::roles
