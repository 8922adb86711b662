// Bounded, interruptible waits for blocking code.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <system_error>

namespace disttf::net {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Cancels every wait that watches it. May be set from any thread or from a signal handler; it stays
// set. An eventfd: readable once interrupt() was called.
class Interrupt {
 public:
  Interrupt();  // throws std::system_error (out of file descriptors)
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  void interrupt() noexcept;  // async-signal-safe
  [[nodiscard]] bool interrupted() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Sleeps until the deadline or the interrupt. Returns true when interrupted.
  bool wait_until(Deadline deadline) const noexcept;

 private:
  int fd_;
};

// Waits until `fd` has one of poll()'s `events`, or has failed; the next call on it returns the
// error. Callable from any thread. Errors: std::errc::timed_out, std::errc::operation_canceled
// (interrupt), or what poll() returned. A ready `fd` takes precedence over both.
[[nodiscard]] std::error_code wait_for(int fd, short events, const Interrupt& interrupt,
                                       Deadline deadline) noexcept;

// The same for several descriptors; their `revents` tell which are ready. The last entry is for the
// interrupt: the caller leaves it free. REQUIRES: fds is not empty.
[[nodiscard]] std::error_code wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                           Deadline deadline) noexcept;

// Returns how long ago a wait until `due` should have ended if the delay shows that this process,
// or its machine, was stopped; else 0. That time does not count toward a peer's heartbeat timeout:
// this process received nothing, and the peer may have been stopped as well.
[[nodiscard]] Clock::duration suspended_for(Deadline due, Deadline now = Clock::now()) noexcept;

// suspended_for() for a loop of waits. It also detects that the process was stopped between two
// waits.
class FreezeWatch {
 public:
  explicit FreezeWatch(Deadline now = Clock::now()) noexcept : now_(now), expected_(now) {}

  // Records that the time is `now` and that the next call is due by `until`. Returns how long this
  // process cannot have run since the last call.
  [[nodiscard]] Clock::duration missed(Deadline now, Deadline until = Deadline::min()) noexcept;
  // Sets when the next missed() is due, without a new clock reading.
  void expect(Deadline until) noexcept { expected_ = std::max(now_, until); }
  // The time of the last missed(). Timeouts that are compared with it have been extended by the
  // time that was missed.
  [[nodiscard]] Deadline now() const noexcept { return now_; }

 private:
  Deadline now_;
  Deadline expected_;
};

}  // namespace disttf::net
