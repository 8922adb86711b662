// Moves a thread away from a processor that it shares with another thread that computes as much as
// it does.
//
// Linux may put two trainers on one processor while another processor is mostly idle, and takes ten
// milliseconds or more to move one of them. The reason: a processor that is idle for less than half
// a millisecond at a time, as that of a ps between two updates, does not pull work from other
// processors. Steps take twice as long meanwhile. A trainer detects this: it yields, gets its turn
// back only after about the time that its own work takes, and the awaited event has not come. It
// then asks to run on any processor but this one.
//
// The move gains nothing where other programs keep all processors busy. Their turns are longer, so
// the thread recognises them and stays. With more trainers than processors some processor is always
// shared; no trainer may move then.
#pragma once

#include <chrono>

#include "net/waiting/interrupt.h"

namespace disttf::net {

// The decisions for one thread, which waits repeatedly. Has no effects of its own. Not thread-safe.
class SharedProcessor {
 public:
  // Marks the begin and the end of a wait. The time between one end and the next begin is work.
  void wait_begins(Deadline now) noexcept;
  void wait_ends(Deadline now) noexcept { ended_ = now; }
  // Called when other threads have had the processor for `turn` and the awaited event has not come.
  // True: the thread is to move now. After a move that did not help the thread stays the next
  // times: 1, then 3, 7, up to 63.
  [[nodiscard]] bool leaves_after(Clock::duration turn) noexcept;
  // The same where the thread parks next: it no longer moves.
  void gave_up(Clock::duration turn) noexcept;

 private:
  Deadline ended_{};          // end of the last wait; unset at first
  Clock::duration worked_{};  // before a wait: the maximum of the most recent ones, decaying
  unsigned quiet_ = 0;        // waits since another thread was detected
  unsigned busy_ = 0;         // grows with the number of recent long turns
  unsigned staying_ = 0;      // detections for which the thread still stays
  unsigned penalty_ = 0;      // as many as those were after the last move
  bool has_moved_ = false;    // in this wait: the move itself looks like a turn of others
};

// Moves this thread to another of the processors that it may run on, if there is one. Its affinity
// mask is as before afterwards.
void leave_processor() noexcept;

}  // namespace disttf::net
