// How a trainer leaves a run: the trainers' side of the shutdown protocol
// (roles/ps/core/run_end.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "roles/trainer/core/dialer.h"
#include "roles/trainer/core/run_context.h"
#include "roles/trainer/core/step_exchange.h"

namespace disttf::roles {

class ShutdownProtocol {
 public:
  ShutdownProtocol(RunContext& context, Dialer& dialer, StepExchange& exchange);

  // Sends GOODBYE to every ps; the exchange is then under way.
  void say_goodbye(Clock::time_point now);
  // Worker: the same, until one ps answers, and then a short time for the others.
  void begin_leaving(Clock::time_point now);
  // Fetches the parameters that the ps hold now.
  void begin_fetching(Clock::time_point now);
  // Chief: sends SHUTDOWN, then GOODBYE.
  void begin_notifying(Clock::time_point now);
  // After that: sends both at once, and waits for no answer.
  void notify_at_once();
  void stop() noexcept { stage_ = Stage::kIdle; }

  // Returns whether the current dial is this object's.
  [[nodiscard]] bool dials() const noexcept {
    return stage_ == Stage::kReaching || stage_ == Stage::kReachingAgain;
  }
  void dialed(std::size_t range, Dialer::Result result, Clock::time_point now);
  void time(Clock::time_point now);
  // As RunSession::forgive(). Dials have limits of their own.
  void forgive(Clock::duration missed) noexcept { deadline_ += missed; }
  // Continues after any event, including those of the exchange. Returns true when it has ended.
  [[nodiscard]] bool advance(Clock::time_point now);

  [[nodiscard]] Clock::time_point deadline() const noexcept;
  [[nodiscard]] bool was_released() const noexcept { return was_released_; }
  [[nodiscard]] std::optional<std::uint64_t> final_step() const noexcept { return final_step_; }

 private:
  enum class Stage : std::uint8_t {
    kIdle,
    kLeaving,
    kReleased,  // by one ps; the others follow
    kReaching,  // opens closed links, for the final parameters
    kFetching,
    kNotifying,
    kPausing,  // before the lost ps are notified again
    kReachingAgain,
    kNotifyingAgain,
    kEnded,
  };

  void leave_or_stay(Clock::time_point now);
  void reach(Clock::time_point now);
  void fetched();
  [[nodiscard]] bool are_of_one_state() const;
  [[nodiscard]] net::Generation generation_of_result() const;
  [[nodiscard]] net::FrameHeader last_word(net::FrameKind kind, const RangeSession& session) const;
  void notify_all(net::FrameKind kind, Clock::time_point now);
  void told(Clock::time_point now);
  void pause_or_end(Clock::time_point now);
  void reach_unnotified(Clock::time_point now);
  void forget_unnotified();
  void notify_again(std::size_t range, net::FrameKind kind, Clock::time_point now);
  void notified_again(Clock::time_point now);

  RunContext& context_;
  Dialer& dialer_;
  StepExchange& exchange_;
  Stage stage_ = Stage::kIdle;
  Clock::time_point deadline_;  // of the stage, or of repeated notification
  Clock::time_point resume_at_;
  std::size_t at_ = 0;
  bool was_released_ = false;
  std::optional<std::uint64_t> final_step_;
  net::Generation result_ = 0;                       // the generation that all ps are notified of
  net::FrameKind kind_ = net::FrameKind::kShutdown;  // what is being sent to all
  // What is being sent to the one that is notified again.
  net::FrameKind again_ = net::FrameKind::kShutdown;
  std::vector<std::size_t> unnotified_;
};

}  // namespace disttf::roles
