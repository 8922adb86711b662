// Decides whether an idle ps yields the processor once before it sleeps. Trainers that share its
// processor and are about to push then find it awake, which saves frames and wake-ups.
//
// It helps even with more tasks than processors. But a process that always computes keeps the
// processor for a millisecond or more each time, while a wake-up would have preempted it. So after
// a turn of that length the ps skips yielding for some times (net::SpinBackoff).
//
// Not thread-safe.
#pragma once

#include "net/waiting/interrupt.h"

namespace disttf::roles {

class YieldPolicy {
 public:
  // Returns whether to yield now; call took() after that.
  [[nodiscard]] bool begins() noexcept { return !backoff_.begins(); }
  // Other processes had the processor for this long.
  void took(net::Clock::duration turn) noexcept;

 private:
  int short_turns_ = 0;  // since the last long one
  net::SpinBackoff backoff_;
};

}  // namespace disttf::roles
