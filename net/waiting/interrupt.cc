#include "net/waiting/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <span>

#include "net/waiting/descriptor.h"

namespace disttf::net {
namespace {

// Far more than a busy machine delays a running thread, and far less than any timeout.
constexpr std::chrono::milliseconds kOverslept{250};

// Rounds up: waking a moment early would cost another turn of the loop.
[[nodiscard]] int poll_timeout(Deadline deadline) noexcept {
  if (deadline == Deadline::min()) return 0;  // a poll of a spin: frequent, so it reads no clock
  const Deadline now = Clock::now();
  if (deadline <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
}

// Calls poll() until the deadline and restarts it after signals. No error: something in `fds` is
// ready.
[[nodiscard]] std::error_code poll_until(std::span<pollfd> fds, Deadline deadline) noexcept {
  while (true) {
    const int timeout = poll_timeout(deadline);
    const int ready = ::poll(fds.data(), fds.size(), timeout);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return last_error();
    // Only a poll that did not sleep ends the wait, so an event that came in the last moment is
    // found.
    if (timeout == 0) return std::make_error_code(std::errc::timed_out);
  }
}

}  // namespace

Interrupt::Interrupt() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) throw std::system_error(last_error(), "cannot open an eventfd");
}

Interrupt::~Interrupt() { ::close(fd_); }

void Interrupt::interrupt() noexcept {
  const int saved_errno = errno;  // may run in a signal handler
  const std::uint64_t one = 1;
  // Fails only when the counter is full, which means that it is set already.
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
  errno = saved_errno;
}

bool Interrupt::interrupted() const noexcept { return wait_until(Deadline::min()); }

bool Interrupt::wait_until(Deadline deadline) const noexcept {
  // The eventfd is never read, so it stays readable.
  std::array<pollfd, 1> fds{pollfd{fd_, POLLIN, 0}};
  return !poll_until(fds, deadline);
}

std::error_code wait_for(int fd, short events, const Interrupt& interrupt,
                         Deadline deadline) noexcept {
  std::array<pollfd, 2> fds{pollfd{fd, events, 0}};
  return wait_for_any(fds, interrupt, deadline);
}

std::error_code wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                             Deadline deadline) noexcept {
  assert(!fds.empty());
  fds.back() = pollfd{interrupt.fd(), POLLIN, 0};
  if (const std::error_code error = poll_until(fds, deadline)) return error;
  // A ready descriptor takes precedence over the interrupt.
  const auto is_ready = [](const pollfd& each) { return each.revents != 0; };
  if (std::any_of(fds.begin(), fds.end() - 1, is_ready)) return {};
  return std::make_error_code(std::errc::operation_canceled);
}

Clock::duration suspended_for(Deadline due, Deadline now) noexcept {
  return due < now - kOverslept ? now - due : Clock::duration::zero();
}

Clock::duration FreezeWatch::missed(Deadline now, Deadline until) noexcept {
  const Clock::duration missed = suspended_for(expected_, now);
  now_ = now;
  expect(until);
  return missed;
}

}  // namespace disttf::net
