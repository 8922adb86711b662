// Opens the link to a range: one attempt, which with replicas tries both of its hosts in turn.
//
// One link at a time: a caller that needs several links opens them one after the other, because the
// shell waits for each connection.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <variant>

#include "net/wire/handshake.h"
#include "roles/trainer/core/run_context.h"
#include "run/outcome.h"

namespace disttf::roles {

// The host has welcomed this trainer and the link is open; or the host has refused it; or the host
// could not be reached or did not answer in time.
using DialAnswer = std::variant<net::Welcome, net::Refusal, std::error_code>;

// The limit of one attempt to connect and shake hands; more attempts follow.
inline constexpr std::chrono::seconds kConnectAttempt{5};
// At most a quarter of the time for all attempts: if this process is suspended during one, the
// whole attempt counts as spent.
[[nodiscard]] constexpr Clock::duration attempt_limit(std::chrono::seconds all) noexcept {
  return std::min<Clock::duration>(kConnectAttempt, Clock::duration(all) / 4);
}

class Dialer {
 public:
  enum class Result : std::uint8_t {
    kUnderWay,  // the other host is tried; or the answer belongs to an abandoned dial
    kOpen,
    kOtherState,  // open, but the range is pinned to a state that the ps does not hold
    kRefused,     // failure() is how this trainer ends
    kReplaced,  // it has just started, and may be welcomed with an incarnation above replaced_by()
    kFailed,    // error()
  };

  explicit Dialer(RunContext& context) : context_(context) {}

  // Begins an attempt. REQUIRES: none is under way.
  void begin(std::size_t range, Clock::time_point until, Clock::time_point now);
  [[nodiscard]] Result dialed(std::size_t range, std::uint64_t attempt, const DialAnswer& answer,
                              Clock::time_point now);
  // Abandons the attempt.
  void give_up() noexcept { range_.reset(); }

  // Returns the range whose link is being opened.
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
  bool asks_other_ = false;  // the second host is being tried
  std::error_code error_;
  std::optional<Failure> failure_;
  std::uint64_t replaced_by_ = 0;
};

}  // namespace disttf::roles
