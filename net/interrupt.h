// Bounded, interruptible waits for the synchronous half of net/.
#pragma once

#include <poll.h>

#include <chrono>
#include <span>
#include <system_error>

namespace disttf::net {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Ends every wait that watches it, from any thread or a signal handler, and stays set.
// An eventfd: readable once interrupt() was called.
class Interrupt {
 public:
  Interrupt();  // throws std::system_error (out of file descriptors)
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  void interrupt() noexcept;  // async-signal-safe
  [[nodiscard]] bool interrupted() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Sleeps until the deadline or the interrupt; true when interrupted.
  bool wait_until(Deadline deadline) const noexcept;

 private:
  int fd_;
};

// Waits until `fd` has one of poll()'s `events` (or has failed: the next call on it tells how).
// Callable from any thread. std::errc::timed_out, std::errc::operation_canceled (interrupt), or
// what poll() said. A ready `fd` comes before both.
[[nodiscard]] std::error_code wait_for(int fd, short events, const Interrupt& interrupt,
                                       Deadline deadline) noexcept;

// The same for several at once; which of them are ready is in their `revents`. The last entry is
// the interrupt's: the caller leaves it free. REQUIRES: fds is not empty.
[[nodiscard]] std::error_code wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                           Deadline deadline) noexcept;

// Waits for one thing after the other as wait_for_any() does, but looks for a short while, giving
// way to other threads in between, before it sleeps: to wake a processor from its sleep takes
// longer than an answer that is about to come. Where looking did not help, because the answer took
// longer than that, the next waits sleep at once: 1 of them, then 3, 7, up to 63.
//
// Not thread-safe.
class EagerWait {
 public:
  [[nodiscard]] std::error_code wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                             Deadline deadline) noexcept;

 private:
  unsigned asleep_ = 0;   // waits that still sleep at once
  unsigned penalty_ = 0;  // as many as those will be, where the next look does not help
};

}  // namespace disttf::net
