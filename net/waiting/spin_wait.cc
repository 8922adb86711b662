#include "net/waiting/spin_wait.h"

namespace disttf::net {

std::error_code SpinWait::wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                       Deadline deadline, Poller* poller) noexcept {
  const std::error_code error = spin_or_park(fds, interrupt, deadline, poller);
  if (may_leave_) processor_.wait_ends(Clock::now());
  return error;
}

std::error_code SpinWait::spin_or_park(std::span<pollfd> fds, const Interrupt& interrupt,
                                       Deadline deadline, Poller* poller) noexcept {
  const Deadline now = Clock::now();
  if (may_leave_) processor_.wait_begins(now);
  if (spin_budget_.begin(deadline, now)) {
    bool yielded = false;
    do {
      std::error_code error;
      // Shared memory is polled first, because that needs no system call. A hit leaves `error`
      // clear.
      if (poller == nullptr || !poller->is_ready()) {
        // Deadline::min() makes this a poll without a sleep.
        error = net::wait_for_any(fds, interrupt, Deadline::min());
      }
      if (error != std::errc::timed_out) {
        spin_budget_.helped();
        return error;
      }
      // Before the first yield no other thread has had a turn that could be judged.
      if (yielded) look_at_turn();
      yielded = true;
    } while (spin_budget_.yield());
    // The yield that ended the spin shows whether a program that always computes has the processor.
    processor_.gave_up(spin_budget_.last_turn());
  }
  return park(fds, interrupt, deadline, poller);
}

void SpinWait::look_at_turn() noexcept {
  if (may_leave_ && processor_.leaves_after(spin_budget_.last_turn())) {
    leave_processor();
    ++times_left_;
  }
}

std::error_code SpinWait::park(std::span<pollfd> fds, const Interrupt& interrupt, Deadline deadline,
                               Poller* poller) noexcept {
  if (poller == nullptr) return net::wait_for_any(fds, interrupt, deadline);
  // The order matters: set the flag, poll once more, then sleep. A writer that misses the flag has
  // written before this poll, which sees the data.
  poller->set_parked(true);
  const std::error_code error =
      poller->is_ready() ? std::error_code{} : net::wait_for_any(fds, interrupt, deadline);
  poller->set_parked(false);
  return error;
}

}  // namespace disttf::net
