// Bounded, interruptible waits for blocking code, and how long a wait polls before it parks.
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

// A turn of this length on a shared processor is a long one. It exceeds what a thread needs to
// answer a request or to compute the gradient of a small model. It is below the time slice of a
// program that always computes, which is three milliseconds or more.
inline constexpr std::chrono::milliseconds kLongTurn{1};

// Exponential back-off of spinning: after a fruitless spin, skip the next 1, then 3, 7, up to 63.
//
// Not thread-safe.
class SpinBackoff {
 public:
  // Returns true if this spin is to be skipped.
  [[nodiscard]] bool begins() noexcept;
  void was_fruitless() noexcept;
  // Resets the back-off: the next fruitless spin counts as the first.
  void forget() noexcept { penalty_ = 0; }

 private:
  unsigned left_ = 0;     // spins still to be skipped
  unsigned penalty_ = 0;  // how many the last fruitless spin made skip
};

// Spin budget of a wait: how long to poll before the thread parks. Waking an idle processor takes
// longer than most awaited events. A spin that ends without its event is fruitless and the next
// ones are skipped. Spinning also backs off where other threads keep the processor for a long turn:
// a spinning thread has to wait until their turn ends, while a woken thread preempts them.
//
// Not thread-safe.
class SpinBudget {
 public:
  // Begins a wait at time `now`. True: poll for at most the spin budget, and call yield()
  // between two polls. False: park at once.
  [[nodiscard]] bool begin(Deadline deadline = Deadline::max(),
                           Deadline now = Clock::now()) noexcept;
  // Yields the processor to other threads. False: park now.
  [[nodiscard]] bool yield() noexcept;
  // The same after a yield that the caller did itself; the time is `now`.
  [[nodiscard]] bool goes_on(Deadline now) noexcept;
  // The awaited event has come.
  void helped() noexcept;
  // The length of the last yield together with the poll before it.
  [[nodiscard]] Clock::duration last_turn() const noexcept { return turn_; }

 private:
  Deadline until_{};   // end of the current spin
  Deadline looked_{};  // time of the last poll
  Clock::duration turn_{};
  bool yielded_ = false;  // in this spin
  SpinBackoff backoff_;
};

// Spin budget of a frame's reader, for the rest of a frame that has begun to arrive or for a frame
// that is due next. The reader yields between two polls. On one machine the data arrives sooner
// than a sleeping thread wakes up. The budget is short because otherwise a reader over a network
// would spin for every packet.
inline constexpr std::chrono::microseconds kFrameSpinTime{200};

}  // namespace disttf::net
