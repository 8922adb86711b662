// When to log what a trainer waits for: the log must say so after seconds, not only when the
// timeout expires; and a long wait must not fill the log.
#pragma once

#include <chrono>

#include "roles/trainer/core/trainer_outbox.h"  // Clock

namespace disttf::roles {

class WaitNotes {
 public:
  // The wait begins.
  void begin(Clock::time_point now) noexcept {
    since_ = now;
    next_after_ = kFirst;
  }
  // The wait continues. Returns true after 5 s, then after 10, 20, 40 s and so on.
  [[nodiscard]] bool is_due(Clock::time_point now) noexcept {
    if (now - since_ < next_after_) return false;
    while (now - since_ >= next_after_) next_after_ *= 2;
    return true;
  }
  // The process was suspended for `missed`; that time does not count.
  void forgive(Clock::duration missed) noexcept { since_ += missed; }

 private:
  static constexpr std::chrono::seconds kFirst{5};

  Clock::time_point since_;
  Clock::duration next_after_ = kFirst;
};

}  // namespace disttf::roles
