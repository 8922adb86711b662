// Opens the link to a range: one attempt, which with replicas asks both of its hosts in turn.
//
// One link at a time: whoever has several to open does so one after the other, as the shell that
// connects waits for each.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <variant>

#include "net/wire/handshake.h"
#include "roles/run/outcome.h"
#include "roles/trainer/core/run_context.h"

namespace disttf::roles {

// The host has welcomed this trainer, and the link is open; or it has refused it; or it could not
// be reached, or did not answer in time.
using DialAnswer = std::variant<net::Welcome, net::Refusal, std::error_code>;

// One attempt to connect and shake hands; more attempts follow.
inline constexpr std::chrono::seconds kConnectAttempt{5};
// And no longer than a quarter of the time that there is for all of them: where this process is
// stopped in one, all that the attempt might have taken is taken for spent.
[[nodiscard]] constexpr Clock::duration attempt_limit(std::chrono::seconds all) noexcept {
  return std::min<Clock::duration>(kConnectAttempt, Clock::duration(all) / 4);
}

class Dialer {
 public:
  enum class Result : std::uint8_t {
    kUnderWay,  // the other host is asked; or the answer is to a dial that was given up
    kOpen,
    kOtherState,  // open, but the range is pinned to a state that the ps does not hold
    kRefused,     // failure() is what this trainer is to end with
    kReplaced,    // but it has just begun: with an incarnation above replaced_by() it may be let in
    kFailed,      // error()
  };

  explicit Dialer(RunContext& context) : context_(context) {}

  // REQUIRES: none is under way.
  void begin(std::size_t range, Clock::time_point until, Clock::time_point now);
  [[nodiscard]] Result dialed(std::size_t range, std::uint64_t attempt, const DialAnswer& answer,
                              Clock::time_point now);
  // Nobody waits for it any more.
  void give_up() noexcept { range_.reset(); }

  // Which range's link is being opened.
  [[nodiscard]] std::optional<std::size_t> range() const noexcept { return range_; }
  [[nodiscard]] std::error_code error() const noexcept { return error_; }
  [[nodiscard]] const Failure& failure() const noexcept { return *failure_; }
  [[nodiscard]] std::uint64_t replaced_by() const noexcept { return replaced_by_; }

 private:
  void dial(Clock::time_point now);
  [[nodiscard]] Result welcomed(RangeSession& session, const net::Welcome& welcome,
                                Clock::time_point now);
  [[nodiscard]] Result failed(std::error_code error, Clock::time_point now);
  [[nodiscard]] Result failed_for_good(std::error_code error);
  [[nodiscard]] bool is_of_another_run(RangeSession::Fit fit, const net::Welcome& welcome) const;
  [[nodiscard]] Result refused(const Failure& failure);

  RunContext& context_;
  std::optional<std::size_t> range_;
  Clock::time_point until_;
  std::uint64_t attempt_ = 0;
  bool asks_other_ = false;  // the second host
  std::error_code error_;
  std::optional<Failure> failure_;
  std::uint64_t replaced_by_ = 0;
};

}  // namespace disttf::roles
