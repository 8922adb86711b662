// Whether a ps that has nothing to do gives way to others once before it sleeps. Trainers that
// share its processor, and are about to push, then find it awake: no frames, and no wake-ups.
//
// So it does also where there are more tasks than processors. But whoever always has something to
// compute, or much of it, has the processor for a millisecond or more each time, and who is woken
// would have taken it back: after a turn of that length the next times are slept through
// (net::TimesAsleep).
//
// Not thread-safe.
#pragma once

#include "net/transport/interrupt.h"

namespace disttf::roles {

class GivingWay {
 public:
  // Whether to give way now; then took() follows.
  [[nodiscard]] bool begins() noexcept { return !asleep_.begins(); }
  // So long others had the processor.
  void took(net::Clock::duration turn) noexcept;

 private:
  int short_turns_ = 0;  // since the last long one
  net::TimesAsleep asleep_;
};

}  // namespace disttf::roles
