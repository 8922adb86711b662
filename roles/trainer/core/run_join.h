// How a trainer comes to the run's state: before the first step, and again when a ps lost its own.
//   connect -> chief: publish -> chief, with --patience: tell the best evaluation -> chief, where
//   they do not agree: restore -> pull -> strict, where they are not at one step: pull the step
//   before -> pinned
// What fails on that way begins again from its beginning, after a pause; until Timeouts::start has
// passed since the first failure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "net/wire/backoff.h"
#include "net/wire/generation.h"
#include "roles/trainer/core/dialer.h"
#include "roles/trainer/core/run_context.h"
#include "roles/trainer/core/step_exchange.h"
#include "roles/trainer/core/wait_notes.h"

namespace disttf::roles {

// Opens all links, retrying those that cannot be opened, for so long.
class Connecting {
 public:
  Connecting(RunContext& context, Dialer& dialer) : context_(context), dialer_(dialer) {}

  // When `limit` has passed the trainer fails with `sentence`, the limit, and who is missing.
  void begin(std::chrono::seconds limit, std::string sentence, Clock::time_point now);
  void stop() noexcept { stage_ = Stage::kIdle; }
  void dialed(Dialer::Result result, Clock::time_point now);
  // REQUIRES: is_under_way(). A process of this task with that incarnation is known: all links are
  // opened anew, in one above that. `missing`: who says so.
  void begin_above(std::uint64_t incarnation, std::string missing, Clock::time_point now);
  void time(Clock::time_point now);
  void forgive(Clock::duration missed) noexcept {
    give_up_at_ += missed;
    notes_.forgive(missed);
  }

  [[nodiscard]] bool is_under_way() const noexcept {
    return stage_ == Stage::kDialing || stage_ == Stage::kPausing;
  }
  // All are open. False: some cannot be opened, but the run is over; or RunContext::failure.
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
  std::string missing_;  // of those before it: names, and why
  WaitNotes notes_;
};

class RunJoin {
 public:
  enum class Status : std::uint8_t {
    kUnderWay,
    kNeedsState,  // chief: provided() goes on
    kJoined,
    kRunOver,  // nobody sets the ps to one state any more
    kFailed,   // RunContext::failure
  };

  RunJoin(RunContext& context, Connecting& connecting, StepExchange& exchange, net::Backoff pauses);

  void lead() noexcept { leads_ = true; }
  // Chief: the parameters of that state are the run's result, and it has them. Until the run turns
  // out to be in another state each ps that is pulled from is told so, as one that has taken the
  // place of another may not know; and so is each that is set to the result again.
  void has_ended(net::Generation result) noexcept { ended_ = result; }
  void begin(Clock::time_point now);
  void provided(std::uint64_t step, Clock::time_point now);
  // After anything has happened, also to connecting and exchange.
  [[nodiscard]] Status advance(Clock::time_point now);

  // kJoined.
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
    kTellingBest,
    kRestoring,
    kPulling,
    kPullingPrevious,
    kPausing,
    kJoined,
    kRunOver,
  };

  void attempt(Clock::time_point now);
  void connected(Clock::time_point now);
  // What is said to one ps after the other, beginning with the last: when ps 0 is ready, all are.
  void publish(Clock::time_point now);
  void tell_best(bool then_restore, Clock::time_point now);
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
  // Whether all ps hold a state, and the same one.
  [[nodiscard]] bool agree() const;

  RunContext& context_;
  Connecting& connecting_;
  StepExchange& exchange_;
  net::Backoff pauses_;
  bool leads_ = false;
  Stage stage_ = Stage::kJoined;
  bool was_over_ = false;  // before this attempt
  std::size_t at_ = 0;     // the range that is spoken to
  std::uint64_t state_step_ = 0;
  bool then_restore_ = false;              // kTellingBest: what follows
  bool ends_ = false;                      // chief: the run, at the ps that do not know it, either
  net::Generation newest_generation_ = 0;  // seen or made; ps that were lost forget theirs
  std::optional<net::Generation> ended_;   // what has_ended() said
  Clock::time_point resume_at_;
  std::optional<Clock::time_point> failing_since_;  // attempts: since this join has begun
  StepResult result_;
};

}  // namespace disttf::roles
