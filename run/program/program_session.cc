#include "run/program/program_session.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <stdexcept>
#include <utility>

#include "math/program_layout.h"
#include "net/wire/text.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

// Multiples of the usual time of a gradient, and of the timeout for what happens once.
constexpr int kUsualTimes = 20;
constexpr int kOnceTimes = 10;

ProgramKind answer_to(ProgramKind request) {
  switch (request) {
    case ProgramKind::kGiveInitial:
      return ProgramKind::kInitial;
    case ProgramKind::kEvaluate:
      return ProgramKind::kEvaluation;
    default:
      return ProgramKind::kGradient;
  }
}

}  // namespace

void ProgramSession::started(std::uint64_t number, TimePoint now) {
  number_ = number;
  state_ = State::kHello;
  telling_.clear();
  has_exited_ = false;
  has_answered_ = false;
  steps_ = 0;
  await_program(std::chrono::nanoseconds(timeout_) * kOnceTimes, now);
}

void ProgramSession::ended(std::uint64_t number, bool was_killed) {
  if (number != number_) {
    return;  // another one has taken over
  }
  state_ = State::kNone;
  hung_at_ = TimePoint::max();
  has_exited_ = !was_killed;
  if (ended_at_ && has_exited_ && !is_released_) {
    release(/*is_told=*/false);
  }
}

void ProgramSession::closed(const std::string& why, TimePoint now) {
  if (!why.empty()) {
    fail("the program sent " + why);
  }
  // Its end follows from the supervisor, unless it hangs. A child of it may hold the socket open
  // for longer. What it has sent may be read after the supervisor's message of its end.
  if (std::exchange(state_, State::kNone) != State::kNone && !is_released_) {
    await_program(timeout_, now);
  }
}

// The program counts as hung if it takes longer than `limit` for the next thing; 0: never.
void ProgramSession::await_program(std::chrono::nanoseconds limit, TimePoint now) {
  asked_at_ = now;
  hung_at_ = limit.count() == 0 ? TimePoint::max()
                                : now + std::chrono::duration_cast<Clock::duration>(limit);
}

void ProgramSession::packet(const ProgramPacket& packet, TimePoint now) {
  const ProgramKind kind = packet.message.kind;
  if (kind == ProgramKind::kFailed) {
    fail(packet.body.empty() ? "the program sent FAILED without a sentence"
                             : net::one_line(packet.text()));
  }
  // It has ended since, and the next one is asked.
  if (state_ == State::kNone) {
    return;
  }
  try {
    if (kind == ProgramKind::kAskRows && state_ == State::kWelcomed) {
      const std::uint64_t rows = packet.message.count;
      if (rows == 0 || rows > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("ASK_ROWS: count is " + std::to_string(rows) +
                                    ", allowed is from 1 to 4294967295");
      }
      rows_ = rows;
      effects_.add(RowsAsked{
          .step = packet.message.step, .slot = packet.message.slot, .rows = packet.message.count});
      return;
    }
    switch (state_) {
      case State::kHello:
        return take_hello(packet);
      case State::kVariables:
        return kind == ProgramKind::kLayout ? take_layout(packet, now) : take_variable(packet);
      case State::kWelcomed:
        return take_answer(packet, now);
      default:
        throw std::invalid_argument(name_of(kind) + " before it was welcomed");
    }
  } catch (const std::invalid_argument& error) {
    fail("the program sent " + std::string(error.what()));
  }
}

void ProgramSession::take_hello(const ProgramPacket& packet) {
  if (packet.message.kind != ProgramKind::kHello) {
    throw std::invalid_argument(name_of(packet.message.kind) + " instead of HELLO");
  }
  told_ = read_hello(packet.text());
  if (hello_ && told_->data != hello_->data) {
    throw std::invalid_argument("HELLO: data is " + net::quoted(told_->data) +
                                ", of the program before it was " + net::quoted(hello_->data));
  }
  if (hello_ && told_->rows != hello_->rows) {
    throw std::invalid_argument("HELLO: rows is " + rows_text(told_->rows) +
                                ", of the program before it was " + rows_text(hello_->rows));
  }
  if (hello_) {
    if (const std::string why = fingerprint_difference(told_->fingerprint, hello_->fingerprint);
        !why.empty()) {
      warn("The program started again computes otherwise: " + why);
    }
  }
  state_ = State::kVariables;
}

void ProgramSession::take_variable(const ProgramPacket& packet) {
  if (packet.message.kind != ProgramKind::kVariable) {
    throw std::invalid_argument(name_of(packet.message.kind) + " instead of VARIABLE or LAYOUT");
  }
  if (telling_.size() == math::kMaxProgramVariables) {
    throw std::invalid_argument("more than 65536 variables");
  }
  telling_.push_back(read_variable(packet.text()));
}

void ProgramSession::take_layout(const ProgramPacket& packet, TimePoint now) {
  if (packet.message.count != telling_.size()) {
    throw std::invalid_argument("LAYOUT: count is " + std::to_string(packet.message.count) +
                                ", the number of VARIABLE before it is " +
                                std::to_string(telling_.size()));
  }
  if (layout_) {
    if (const auto why = math::layout_difference(layout_of_program(telling_),
                                                 layout_of_program(*layout_), "at first it")) {
      throw std::invalid_argument("another layout than before it was started again: " + *why);
    }
  } else {
    static_cast<void>(layout_of_program(telling_));
    layout_ = telling_;
    hello_ = told_;
    rows_ = told_->rows;
  }
  state_ = State::kLaidOut;
  hung_at_ = TimePoint::max();
  if (!welcome_.empty()) {
    send_welcome(now);
  }
}

void ProgramSession::take_answer(const ProgramPacket& packet, TimePoint now) {
  const ProgramMessage& message = packet.message;
  if (!request_ || message.kind != answer_to(request_->kind)) {
    throw std::invalid_argument(
        name_of(message.kind) +
        (request_ ? ", asked was " + name_of(request_->kind) : ", nothing was asked"));
  }
  if (request_->kind != ProgramKind::kGiveInitial &&
      (message.step != request_->step || message.slot != request_->slot)) {
    throw std::invalid_argument(name_of(message.kind) + " of step " + std::to_string(message.step) +
                                " and slot " + std::to_string(message.slot) + ", asked was step " +
                                std::to_string(request_->step) + " and slot " +
                                std::to_string(request_->slot));
  }
  answer_.emplace(ProgramAnswer{.loss = message.value, .numbers = read_numbers(packet.text())});
  if (request_->kind == ProgramKind::kEvaluate) {
    check_evaluation(answer_->numbers);
  }
  if (request_->kind == ProgramKind::kCompute) {
    if (has_answered_) {
      times_[times_count_++ % times_.size()] = now - asked_at_;
    }
    has_answered_ = true;
    ++steps_;
    if (steps_ == 1 || steps_ == kSettledSteps) {
      effects_.add(SendToSupervisor{{.kind = ProgramKind::kSteady, .step = number_}});
    }
  }
  request_.reset();
  hung_at_ = TimePoint::max();
}

void ProgramSession::welcome(std::string text, TimePoint now) {
  welcome_ = std::move(text);
  answer_.reset();
  if (state_ == State::kLaidOut) {
    send_welcome(now);
  }
}

void ProgramSession::restart() {
  welcome_.clear();
  request_.reset();
  answer_.reset();
  hung_at_ = TimePoint::max();
  if (state_ == State::kWelcomed) {
    state_ = State::kNone;  // until the next one has started
    effects_.add(
        SendToSupervisor{{.kind = ProgramKind::kRestart, .number = SIGTERM, .step = number_}});
  }
}

void ProgramSession::send_welcome(TimePoint now) {
  effects_.add(SendToProgram{.message = {.kind = ProgramKind::kWelcome},
                             .body = SendToProgram::Body::kWelcome,
                             .text = {}});
  state_ = State::kWelcomed;
  if (request_) {
    send_request(now);
  } else if (ended_at_) {
    release(/*is_told=*/true);
  }
}

void ProgramSession::ask(const ProgramRequest& request, TimePoint now) {
  request_ = request;
  answer_.reset();
  if (state_ == State::kWelcomed) {
    send_request(now);
  }
}

void ProgramSession::send_request(TimePoint now) {
  const bool computes = request_->kind == ProgramKind::kCompute;
  effects_.add(SendToProgram{
      .message = {.kind = request_->kind,
                  .step = request_->step,
                  .slot = request_->slot,
                  .seed = request_->seed},
      .body = computes && rows_ != 0 ? SendToProgram::Body::kRows : SendToProgram::Body::kNone,
      .text = {}});
  await_program(timeout_.count() == 0 ? std::chrono::nanoseconds(0) : patience(), now);
}

std::chrono::nanoseconds ProgramSession::patience() const {
  std::chrono::nanoseconds limit = timeout_;
  if (times_count_ > 0) {
    auto times = times_;
    const auto end =
        times.begin() + static_cast<std::ptrdiff_t>(std::min(times_count_, times.size()));
    const auto middle = times.begin() + (end - times.begin()) / 2;
    std::nth_element(times.begin(), middle, end);
    limit = std::max(limit, *middle * kUsualTimes);
  }
  // The first answer includes what a framework compiles; an evaluation takes as long as it takes.
  const bool is_usual = has_answered_ && request_->kind == ProgramKind::kCompute;
  return is_usual ? limit : limit * kOnceTimes;
}

void ProgramSession::end(std::uint64_t step) {
  ended_at_ = step;
  request_.reset();
  if (state_ == State::kWelcomed || has_exited_) {
    release(state_ == State::kWelcomed);
  }
}

// The supervisor first: it then receives this before the program can exit.
void ProgramSession::release(bool is_told) {
  is_released_ = true;
  hung_at_ = TimePoint::max();
  effects_.add(SendToSupervisor{
      {.kind = ProgramKind::kRelease, .number = is_told ? 0U : 1U, .step = number_}});
  if (is_told) {
    effects_.add(SendToProgram{.message = {.kind = ProgramKind::kEnd, .step = *ended_at_},
                               .body = SendToProgram::Body::kNone,
                               .text = {}});
  }
}

void ProgramSession::refuse(int exit_code, const std::string& sentence) {
  if (state_ == State::kNone) {
    return;
  }
  effects_.add(SendToProgram{
      .message = {.kind = ProgramKind::kRefused, .number = static_cast<std::uint32_t>(exit_code)},
      .body = SendToProgram::Body::kText,
      .text = std::string(net::cut_utf8(sentence, kMaxProgramBody))});
}

void ProgramSession::time(TimePoint now) {
  if (now < hung_at_) {
    return;
  }
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - asked_at_);
  const std::string what = state_ == State::kNone ? "closed its socket, and has not ended"
                           : state_ != State::kWelcomed
                               ? "not told its variables, as its client does when it joins,"
                               : "not answered " + name_of(request_->kind) + " of step " +
                                     std::to_string(request_->step);
  warn("The program has " + what + " for " + std::to_string(waited.count()) +
       " s: it counts as hung and is started again");
  hung_at_ = TimePoint::max();
  effects_.add(
      SendToSupervisor{{.kind = ProgramKind::kRestart, .number = SIGABRT, .step = number_}});
}

void ProgramSession::forgive(Clock::duration missed, TimePoint now) {
  if (hung_at_ != TimePoint::max()) {
    asked_at_ += missed;
    hung_at_ = std::max(hung_at_ + missed, now + std::min<Clock::duration>(missed, kThawGrace));
  }
}

void ProgramSession::warn(std::string text) {
  effects_.add(ProgramNote{.is_warning = true, .text = std::move(text)});
}

void ProgramSession::fail(const std::string& sentence) {
  // Not "the program failed": the sentence begins with the file and the line.
  throw Failure(kError, sentence);
}

}  // namespace disttf::roles
