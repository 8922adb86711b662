// Waits that spin for a while before they park the thread: waking an idle processor takes longer
// than most awaited events.
//
// A spin that ends without its event is fruitless, and the next ones are skipped. Spinning also
// backs off where other threads keep the processor for a long turn: a spinning thread has to wait
// until their turn ends, while a woken thread preempts them.
//
// A spinning thread may also detect that it shares its processor with another thread that computes
// as much as it does. Linux may put two trainers on one processor while another processor is mostly
// idle, and takes ten milliseconds or more to move one of them. The reason: a processor that is
// idle for less than half a millisecond at a time, as that of a ps between two updates, does not
// pull work from other processors. Steps take twice as long meanwhile. A trainer detects this: it
// yields, gets its turn back only after about the time that its own work takes, and the awaited
// event has not come. It then asks to run on any processor but this one.
//
// The move gains nothing where other programs keep all processors busy. Their turns are longer, so
// the thread recognises them and stays. With more trainers than processors some processor is always
// shared; no trainer may move then.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <system_error>

#include "net/waiting/interrupt.h"

namespace disttf::net {

// A poller for events that arrive without a system call: data that another process writes to shared
// memory.
class Poller {
 public:
  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  virtual ~Poller() = default;
  // Returns true if the event is there.
  [[nodiscard]] virtual bool is_ready() noexcept = 0;
  // Sets the parked flag. From now on, if `parked`, the writer must also wake the thread. The
  // caller polls once more after setting it.
  virtual void set_parked(bool parked) noexcept = 0;
};

// Exponential back-off: after a fruitless attempt, skip the next 1, then 3, 7, up to 63.
class SpinBackoff {
 public:
  // Returns true if this attempt is to be skipped.
  [[nodiscard]] bool skips() noexcept;
  void was_fruitless() noexcept;
  // The next fruitless attempt counts as the first.
  void forget() noexcept { penalty_ = 0; }

 private:
  unsigned left_ = 0;     // attempts still to be skipped
  unsigned penalty_ = 0;  // how many the last fruitless attempt made skip
};

// Moves this thread to another of the processors that it may run on, if there is one. Its affinity
// mask is as before afterwards.
void leave_processor() noexcept;

// The waits of one thread for one kind of event.
//
// Not thread-safe.
class SpinThenPark {
 public:
  // Waits as net::wait_for_any() does, but spins first. An event that `poller` sees ends the wait
  // as a ready descriptor does; no descriptor needs to be ready then.
  [[nodiscard]] std::error_code wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                             Deadline deadline, Poller* poller = nullptr) noexcept;

  // The parts of a wait, for a thread that parks in another way.
  // Calls `poll` until it returns true, and yields to other threads between two polls. False: park
  // now.
  template <typename Poll>
  [[nodiscard]] bool spin(const Poll& poll, Deadline deadline = Deadline::max()) {
    if (begin(deadline, Clock::now())) {
      do {
        if (poll()) {
          found();
          return true;
        }
        if (leaves()) leave_processor();
      } while (yield());
    }
    return false;
  }
  // Yields once, and returns whether `poll` returns true then. It skips this after long turns of
  // other threads, until there have been many short ones.
  template <typename Poll>
  [[nodiscard]] bool yield_once(const Poll& poll) {
    if (!begin_once()) return false;
    const Deadline begin = Clock::now();
    yield_processor();
    end_once(Clock::now() - begin);
    return poll();
  }
  // Sets the parked flag, polls once more, and calls `sleep` if the event is not there. The order
  // matters: a writer that misses the flag has written before the poll, which sees the data.
  template <typename Sleep>
  static void park(Poller& poller, const Sleep& sleep) {
    poller.set_parked(true);
    if (!poller.is_ready()) sleep();
    poller.set_parked(false);
  }

  // Whether the thread may move away from a processor that it shares with another computing thread.
  // False by default.
  void may_leave_processor(bool may) noexcept { may_leave_ = may; }
  // How often it has moved.
  [[nodiscard]] std::uint64_t times_left() const noexcept { return times_left_; }

  // The decisions of these waits, which have no effects of their own.
  // Begins a wait. False: park at once.
  [[nodiscard]] bool begin(Deadline deadline, Deadline now) noexcept;
  // Called after a fruitless poll: whether the thread moves now, because of the last turn that
  // other threads had. After a move that did not help, it stays the next times (SpinBackoff).
  [[nodiscard]] bool leaves() noexcept;
  // Called after a yield. False: park now.
  [[nodiscard]] bool goes_on(Deadline now) noexcept;
  // The event has come.
  void found() noexcept;
  // Ends a wait. The time between one end and the next begin is work.
  void end(Deadline now) noexcept { ended_ = now; }
  // Whether yield_once() yields now; and what the yield shows, which took this long.
  [[nodiscard]] bool begin_once() noexcept { return !backoff_.skips(); }
  void end_once(Clock::duration turn) noexcept;

 private:
  [[nodiscard]] bool yield() noexcept;
  static void yield_processor() noexcept;
  // A wait begins: updates what is recorded of this thread's work and of the turns of others.
  void count_wait(Deadline now) noexcept;

  Deadline until_{};        // end of the current spin
  Deadline looked_{};       // time of the last poll
  Clock::duration turn_{};  // length of the last yield together with the poll before it
  bool yielded_ = false;    // in this spin
  int short_turns_ = 0;     // of yield_once(), since the last long one
  SpinBackoff backoff_;

  // Whether to leave the processor.
  bool may_leave_ = false;
  std::uint64_t times_left_ = 0;
  Deadline ended_{};          // end of the last wait; unset at first
  Clock::duration worked_{};  // before a wait: the maximum of the most recent ones, decaying
  unsigned quiet_ = 0;        // waits since another thread was detected
  unsigned busy_ = 0;         // grows with the number of recent long turns
  bool has_moved_ = false;    // in this wait: the move itself looks like a turn of others
  SpinBackoff staying_;
};

// Spin budget of a frame's reader, for the rest of a frame that has begun to arrive or for a frame
// that is due next. On one machine the data arrives sooner than a sleeping thread wakes up. The
// budget is short because otherwise a reader over a network would spin for every packet.
inline constexpr std::chrono::microseconds kFrameSpinTime{200};
// Yields between two polls of such a reader. False: it is `until`, so park.
[[nodiscard]] bool yield_until(Deadline until) noexcept;

}  // namespace disttf::net
