// Bounded, interruptible waits for the synchronous half of net/.
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

// How long ago a wait until `due` should have ended, where that is so long that this process cannot
// have been running: it was stopped, or its machine was. Else 0. What peers did not say meanwhile
// is not their silence: nobody listened, and they may have been stopped as well.
[[nodiscard]] Clock::duration overslept(Deadline due, Deadline now = Clock::now()) noexcept;

// The same for whoever waits again and again: notices also that this process was stopped between
// two waits.
class FreezeWatch {
 public:
  explicit FreezeWatch(Deadline now = Clock::now()) noexcept : now_(now), expected_(now) {}

  // It is `now`. For how long this process cannot have been running since the last call; what comes
  // next may take until `until`.
  [[nodiscard]] Clock::duration missed(Deadline now, Deadline until = Deadline::min()) noexcept;
  // The same without another look at the clock: what comes next may take until `until`.
  void expect(Deadline until) noexcept { expected_ = std::max(now_, until); }
  // As of the last missed(): what is judged by this is judged by a time that has been made up for.
  [[nodiscard]] Deadline now() const noexcept { return now_; }

 private:
  Deadline now_;
  Deadline expected_;
};

// Longer than a thread that shares a processor needs to answer, or for the gradient of a small
// model; less than the turn of a program that always has something to compute, three milliseconds
// or more.
inline constexpr std::chrono::milliseconds kLongTurn{1};

// Times that are slept through because one was in vain: 1 of them, then 3, 7, up to 63.
//
// Not thread-safe.
class TimesAsleep {
 public:
  // Whether this one is.
  [[nodiscard]] bool begins() noexcept;
  void was_in_vain() noexcept;
  // The next one in vain is as if it were the first.
  void forget() noexcept { penalty_ = 0; }

 private:
  unsigned left_ = 0;     // that are still slept through
  unsigned penalty_ = 0;  // as many as those were after the last one in vain
};

// How long to look for something before sleeping until it comes: to wake a processor from its sleep
// takes longer than something that is about to come. Where looking did not help, because it took
// longer than that, the next times are slept through. So they are where others have the processor
// for long when they are given way: who is awake waits for their turn to end, and who is woken
// takes the processor from them.
//
// Not thread-safe.
class Eagerness {
 public:
  // It is `now`. True: look, until then at most, and give_way() between one look and the next.
  // False: not at all this time.
  [[nodiscard]] bool begin(Deadline deadline = Deadline::max(),
                           Deadline now = Clock::now()) noexcept;
  // To other threads. False: sleep now.
  [[nodiscard]] bool give_way() noexcept;
  // The same when others have been given way, and it is `now`.
  [[nodiscard]] bool goes_on(Deadline now) noexcept;
  // It has come.
  void helped() noexcept;
  // How long others had the processor when they were given way last, and the look before that.
  [[nodiscard]] Clock::duration last_turn() const noexcept { return turn_; }

 private:
  Deadline until_{};   // the look under way ends
  Deadline looked_{};  // last
  Clock::duration turn_{};
  bool gave_way_ = false;  // in this look
  TimesAsleep asleep_;
};

// For so long the reader of a frame that has begun to come, or is awaited next, looks for its rest
// again and again, giving way to others in between, before it sleeps: on one machine that is there
// sooner than a sleeping thread wakes up. Not longer: over a cable every packet would be awaited
// so.
inline constexpr std::chrono::microseconds kFrameEagerness{200};

}  // namespace disttf::net
