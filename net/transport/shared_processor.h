// Leaving a processor to another thread that computes on it just as this one does.
//
// Linux may put two trainers on one processor while another has little to do, and takes ten
// milliseconds and more until it moves one of them: a processor that is idle for less than half a
// millisecond at a time, as that of a ps is between two updates, does not look for work on others.
// Many steps take twice as long meanwhile. A trainer notices: it gives way, has its turn back only
// after as long as it computes itself, and what it waits for has not come. Then it asks to run on
// any processor but this one.
//
// On processors that others keep busy it gains nothing by that, and stays: whoever always has
// something to compute has longer turns. Where there are more trainers than processors, some share
// one everywhere: nobody is to ask then.
#pragma once

#include <chrono>

#include "net/transport/interrupt.h"

namespace disttf::net {

// Of one thread, which waits again and again. Only decides. Not thread-safe.
class SharedProcessor {
 public:
  // A wait begins; it ends. What lies between one's end and the next one's begin is work.
  void wait_begins(Deadline now) noexcept;
  void wait_ends(Deadline now) noexcept { ended_ = now; }
  // Others have had the processor for `turn`, and what is waited for has not come. True: this
  // thread leaves it now. Where that does not help it stays the next times: 1, then 3, 7, up to 63.
  [[nodiscard]] bool leaves_after(Clock::duration turn) noexcept;
  // The same where this thread sleeps next: it does not leave any more.
  void gave_up(Clock::duration turn) noexcept;

 private:
  Deadline ended_{};          // the last wait; at first none
  Clock::duration worked_{};  // before a wait, the most of the newest ones
  unsigned quiet_ = 0;        // waits since somebody was noticed
  unsigned busy_ = 0;         // more the more long turns there were of late
  unsigned staying_ = 0;      // times that it is still not left
  unsigned penalty_ = 0;      // as many as those will be next
  bool has_moved_ = false;    // just now: the move looks like a turn of others
};

// This thread goes on on another of the processors that it may run on, if there is one, and may run
// on all of them as before.
void leave_processor() noexcept;

}  // namespace disttf::net
