// Waits that spin for a while before they park the thread (spin, then park).
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <system_error>

#include "net/waiting/interrupt.h"
#include "net/waiting/shared_processor.h"

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
  // Sets the parked flag. From now on, if `parked`, the writer must also make one of the
  // descriptors ready. The caller polls once more after setting it.
  virtual void set_parked(bool parked) noexcept = 0;
};

// Waits as net::wait_for_any() does, but first polls within its SpinBudget, yielding
// to other threads between two polls. An event that `poller` sees ends the wait as a ready
// descriptor does; no descriptor needs to be ready then.
//
// Not thread-safe.
class SpinWait {
 public:
  [[nodiscard]] std::error_code wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                             Deadline deadline, Poller* poller = nullptr) noexcept;
  // Whether the thread may move away from a processor that it shares with another computing thread
  // (net/waiting/shared_processor.h). False by default.
  void may_leave_processor(bool may) noexcept { may_leave_ = may; }
  // How often it has moved.
  [[nodiscard]] std::uint64_t times_left() const noexcept { return times_left_; }

 private:
  [[nodiscard]] std::error_code spin_or_park(std::span<pollfd> fds, const Interrupt& interrupt,
                                             Deadline deadline, Poller* poller) noexcept;
  [[nodiscard]] static std::error_code park(std::span<pollfd> fds, const Interrupt& interrupt,
                                            Deadline deadline, Poller* poller) noexcept;

  // Called after a yield that brought no event: decides whether to move to another processor.
  void look_at_turn() noexcept;

  SpinBudget spin_budget_;
  SharedProcessor processor_;
  bool may_leave_ = false;
  std::uint64_t times_left_ = 0;
};

}  // namespace disttf::net
