// Waits of a thread that had better not sleep for what is about to come.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <system_error>

#include "net/transport/interrupt.h"
#include "net/transport/shared_processor.h"

namespace disttf::net {

// What may come without a system call: something that another process leaves in memory.
class Lookout {
 public:
  Lookout() = default;
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;
  virtual ~Lookout() = default;
  // It is there.
  [[nodiscard]] virtual bool sees() noexcept = 0;
  // Whoever leaves something is to make one of the descriptors ready as well from now on, where
  // `asleep`. A last look follows.
  virtual void set_asleep(bool asleep) noexcept = 0;
};

// Waits for one thing after the other as wait_for_any() does, but looks for a short while (see
// Eagerness), giving way to other threads in between, before it sleeps.
// What `lookout` sees ends a wait like a descriptor that is ready; none of them need be.
//
// Not thread-safe.
class EagerWait {
 public:
  [[nodiscard]] std::error_code wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                             Deadline deadline,
                                             Lookout* lookout = nullptr) noexcept;
  // Whether a processor that it finds shared is left (net/transport/shared_processor.h). Not at
  // first.
  void may_leave_processor(bool may) noexcept { may_leave_ = may; }
  // How often one was left.
  [[nodiscard]] std::uint64_t times_left() const noexcept { return times_left_; }

 private:
  [[nodiscard]] std::error_code look_or_sleep(std::span<pollfd> fds, const Interrupt& interrupt,
                                              Deadline deadline, Lookout* lookout) noexcept;
  [[nodiscard]] static std::error_code sleep(std::span<pollfd> fds, const Interrupt& interrupt,
                                             Deadline deadline, Lookout* lookout) noexcept;

  // After a turn of others that has brought nothing.
  void look_at_turn() noexcept;

  Eagerness eagerness_;
  SharedProcessor processor_;
  bool may_leave_ = false;
  std::uint64_t times_left_ = 0;
};

}  // namespace disttf::net
