#include "net/transport/eager_wait.h"

namespace disttf::net {

std::error_code EagerWait::wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                        Deadline deadline, Lookout* lookout) noexcept {
  const std::error_code error = look_or_sleep(fds, interrupt, deadline, lookout);
  if (may_leave_) processor_.wait_ends(Clock::now());
  return error;
}

std::error_code EagerWait::look_or_sleep(std::span<pollfd> fds, const Interrupt& interrupt,
                                         Deadline deadline, Lookout* lookout) noexcept {
  const Deadline now = Clock::now();
  if (may_leave_) processor_.wait_begins(now);
  if (eagerness_.begin(deadline, now)) {
    bool gave_way = false;
    do {
      std::error_code error;
      // Deadline::min() makes this a poll without a sleep.
      if (lookout == nullptr || !lookout->sees()) {
        error = net::wait_for_any(fds, interrupt, Deadline::min());
      }
      if (error != std::errc::timed_out) {
        eagerness_.helped();
        return error;
      }
      if (gave_way) look_at_turn();
      gave_way = true;
    } while (eagerness_.give_way());
    processor_.gave_up(eagerness_.last_turn());
  }
  return sleep(fds, interrupt, deadline, lookout);
}

void EagerWait::look_at_turn() noexcept {
  if (may_leave_ && processor_.leaves_after(eagerness_.last_turn())) {
    leave_processor();
    ++times_left_;
  }
}

std::error_code EagerWait::sleep(std::span<pollfd> fds, const Interrupt& interrupt,
                                 Deadline deadline, Lookout* lookout) noexcept {
  if (lookout == nullptr) return net::wait_for_any(fds, interrupt, deadline);
  // The order matters: set the flag, poll once more, then sleep. A writer that misses the flag has
  // written before this poll, which sees the data.
  lookout->set_asleep(true);
  const std::error_code error =
      lookout->sees() ? std::error_code{} : net::wait_for_any(fds, interrupt, deadline);
  lookout->set_asleep(false);
  return error;
}

}  // namespace disttf::net
