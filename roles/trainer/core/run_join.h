// How a trainer joins the run's state: before the first step, and again when a ps has lost its
// state.
//   connect -> chief: publish -> chief, with --patience: send the best evaluation
//   -> chief, if the ps disagree: restore -> pull
//   -> fully synchronous, if the ps are one step apart: pull the previous step -> pinned
// A failure restarts this from the beginning, after a pause; until Timeouts::start has passed since
// the first failure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "net/wire/backoff.h"
#include "net/wire/frame.h"
#include "roles/trainer/core/dialer.h"
#include "roles/trainer/core/run_context.h"
#include "roles/trainer/core/step_exchange.h"
#include "roles/trainer/core/wait_notes.h"

namespace disttf::roles {

// Opens all links, and retries those that cannot be opened, for a limited time.
class Connecting {
 public:
  Connecting(RunContext& context, Dialer& dialer) : context_(context), dialer_(dialer) {}

  // After `limit` the trainer fails with `sentence`, the limit, and the missing ps.
  void begin(std::chrono::seconds limit, std::string sentence, Clock::time_point now);
  void stop() noexcept { stage_ = Stage::kIdle; }
  void dialed(Dialer::Result result, Clock::time_point now);
  // A process of this task with that incarnation exists: opens all links again with a higher one.
  // `missing`: the source of that report. REQUIRES: is_under_way().
  void begin_above(std::uint64_t incarnation, std::string missing, Clock::time_point now);
  void time(Clock::time_point now);
  void forgive(Clock::duration missed) noexcept {
    give_up_at_ += missed;
    notes_.forgive(missed);
  }

  [[nodiscard]] bool is_under_way() const noexcept {
    return stage_ == Stage::kDialing || stage_ == Stage::kPausing;
  }
  // Returns whether all links are open. If not, and connecting has ended, the run is over, or
  // RunContext::failure is set.
  [[nodiscard]] bool are_open() const noexcept { return stage_ == Stage::kOpen; }
  [[nodiscard]] Clock::time_point deadline() const noexcept {
    return stage_ == Stage::kPausing ? resume_at_ : Clock::time_point::max();
  }

 private:
  enum class Stage : std::uint8_t { kIdle, kDialing, kPausing, kOpen, kGivenUp };
  void next(Clock::time_point now);
  void all_tried(Clock::time_point now);

  RunContext& context_;
  Dialer& dialer_;
  Stage stage_ = Stage::kIdle;
  std::chrono::seconds limit_{0};
  std::string sentence_;
  Clock::time_point give_up_at_;
  Clock::time_point resume_at_;
  std::size_t at_ = 0;   // the range that is being dialed
  std::string missing_;  // names and errors of earlier ranges
  WaitNotes notes_;
};

class RunJoin {
 public:
  enum class Status : std::uint8_t {
    kUnderWay,
    kNeedsState,  // chief: continue with provided()
    kJoined,
    kRunOver,  // no chief restores the ps any more
    kFailed,   // RunContext::failure
  };

  RunJoin(RunContext& context, Connecting& connecting, StepExchange& exchange, net::Backoff pauses);

  void lead() noexcept { leads_ = true; }
  // Chief: the parameters of that state are the run's result, and this trainer has them. Until the
  // run turns out to be in another state, each ps that it pulls from is notified of that, because a
  // ps that has replaced another one may not know; so is each ps that is restored to the result.
  void has_ended(net::Generation result) noexcept { ended_ = result; }
  void begin(Clock::time_point now);
  void provided(std::uint64_t step, Clock::time_point now);
  // Continues after any event, including those of connecting and of the exchange.
  [[nodiscard]] Status advance(Clock::time_point now);

  // REQUIRES: kJoined.
  [[nodiscard]] const StepResult& result() const noexcept { return result_; }
  [[nodiscard]] Clock::time_point deadline() const noexcept {
    return stage_ == Stage::kPausing ? resume_at_ : Clock::time_point::max();
  }
  void forgive(Clock::duration missed) noexcept {
    if (failing_since_) {
      *failing_since_ += missed;
    }
  }

 private:
  enum class Stage : std::uint8_t {
    kConnecting,
    kPublishing,
    kNeedsState,
    kSendingBest,
    kRestoring,
    kPulling,
    kPullingPrevious,
    kPausing,
    kJoined,
    kRunOver,
  };

  void attempt(Clock::time_point now);
  void connected(Clock::time_point now);
  // Sent to one ps after the other, beginning with the last: when ps 0 is ready, all are.
  void publish(Clock::time_point now);
  void send_best(bool then_restore, Clock::time_point now);
  void restore(Clock::time_point now);
  void pull_as_chief(Clock::time_point now);
  void pull(Stage stage, Clock::time_point now);
  void answered(Clock::time_point now);
  void pulled(Clock::time_point now);
  void finish();
  void state_lost(Clock::time_point now);
  [[nodiscard]] bool has_lost_steps() const;
  [[nodiscard]] bool holds_result() const;
  [[nodiscard]] bool is_half_ended() const;
  void leave_behind();
  void pause(Clock::time_point now);
  // Returns whether all ps hold a state, and the same one.
  [[nodiscard]] bool agree() const;

  RunContext& context_;
  Connecting& connecting_;
  StepExchange& exchange_;
  net::Backoff pauses_;
  bool leads_ = false;
  Stage stage_ = Stage::kJoined;
  bool was_over_ = false;  // before this attempt
  std::size_t at_ = 0;     // the range of the current request
  std::uint64_t state_step_ = 0;
  bool then_restore_ = false;              // kSendingBest: a restore follows
  bool ends_ = false;                      // chief: concludes the run also at ps that do not know
  net::Generation newest_generation_ = 0;  // seen or made; a ps that was lost forgets its own
  std::optional<net::Generation> ended_;   // set by has_ended()
  Clock::time_point resume_at_;
  std::optional<Clock::time_point> failing_since_;  // since the first failed attempt of this join
  StepResult result_;
};

}  // namespace disttf::roles
