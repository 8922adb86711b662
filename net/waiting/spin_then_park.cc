#include "net/waiting/spin_then_park.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace disttf::net {
namespace {

// The longest spin: a few times as long as a ps needs for a step of some megabytes.
constexpr std::chrono::microseconds kSpinBudget{2000};
// A turn of this length is a long one. It exceeds what a thread needs to answer a request or to
// compute the gradient of a small model. It is below the time slice of a program that always
// computes, which is three milliseconds or more.
constexpr std::chrono::milliseconds kLongTurn{1};
// The most attempts that are skipped in a row.
constexpr unsigned kMaxSkippedSpins = 63;
// After this many short turns of yield_once() the last long one counts as chance.
constexpr int kManyShortTurns = 32;

// A turn of a similar trainer takes about as long as this thread's own work. A turn of a ps, which
// makes an update or part of it, is shorter. The move itself takes longer than the shortest turns.
constexpr int kShareOfWork = 60;  // in hundredths
constexpr std::chrono::microseconds kLeastTurn{20};
// How many waits a long turn is remembered for, and the bound for all of them. Two may be chance.
constexpr unsigned kWaitsRemembered = 1024;
constexpr unsigned kMostRemembered = 8 * kWaitsRemembered;
constexpr unsigned kManyLongTurns = 2 * kWaitsRemembered;
// After so many undisturbed waits an earlier detection counts as chance.
constexpr unsigned kManyWaits = 64;

}  // namespace

bool SpinBackoff::skips() noexcept {
  if (left_ == 0) {
    return false;
  }
  --left_;
  return true;
}

void SpinBackoff::was_fruitless() noexcept {
  penalty_ = std::min(2 * penalty_ + 1, kMaxSkippedSpins);
  left_ = penalty_;
}

// ---------------------------------------------------------------------------------------- waiting

std::error_code SpinThenPark::wait_for_any(std::span<pollfd> fds, const Interrupt& interrupt,
                                           Deadline deadline, Poller* poller) noexcept {
  std::error_code error;
  const auto poll = [&] {
    // Shared memory is polled first, because that needs no system call.
    error = poller != nullptr && poller->is_ready()
                ? std::error_code{}  // Deadline::min() makes this a poll without a sleep.
                : net::wait_for_any(fds, interrupt, Deadline::min());
    return error != std::errc::timed_out;
  };
  if (!spin(poll, deadline)) {
    error.clear();
    const auto sleep = [&] { error = net::wait_for_any(fds, interrupt, deadline); };
    if (poller != nullptr) {
      park(*poller, sleep);
    } else {
      sleep();
    }
  }
  if (may_leave_) end(Clock::now());
  return error;
}

bool SpinThenPark::yield() noexcept {
  yield_processor();
  return goes_on(Clock::now());
}

void SpinThenPark::yield_processor() noexcept { ::sched_yield(); }

bool yield_until(Deadline until) noexcept {
  if (Clock::now() >= until) return false;
  ::sched_yield();
  return true;
}

// -------------------------------------------------------------------------------------- decisions

bool SpinThenPark::begin(Deadline deadline, Deadline now) noexcept {
  if (may_leave_) count_wait(now);
  if (backoff_.skips()) {
    return false;
  }
  yielded_ = false;
  looked_ = now;
  until_ = std::min(deadline, looked_ + kSpinBudget);
  return true;
}

bool SpinThenPark::goes_on(Deadline now) noexcept {
  turn_ = now - std::exchange(looked_, now);
  yielded_ = true;
  if (turn_ < kLongTurn && now < until_) return true;
  // After a long turn it parks: other threads compute here, and only a woken thread preempts them.
  backoff_.was_fruitless();
  // The turn shows whether a program that always computes has the processor. A long turn right
  // after a move is the move itself and does not count.
  if (turn_ >= kLongTurn && !std::exchange(has_moved_, false)) {
    busy_ = std::min(busy_ + kWaitsRemembered, kMostRemembered);
  }
  return false;
}

// An event that was there at the first poll shows nothing about how long a spin takes.
void SpinThenPark::found() noexcept {
  if (yielded_) backoff_.forget();
}

void SpinThenPark::end_once(Clock::duration turn) noexcept {
  if (turn >= kLongTurn) {
    short_turns_ = 0;
    backoff_.was_fruitless();
  } else if (++short_turns_ == kManyShortTurns) {
    short_turns_ = 0;
    backoff_.forget();
  }
}

// ---------------------------------------------------------------------------- a shared processor

void SpinThenPark::count_wait(Deadline now) noexcept {
  has_moved_ = false;
  if (ended_ != Deadline{}) {
    // Most of the several waits of one step have no work before them, so a decaying maximum is
    // kept.
    worked_ = std::max(now - ended_, worked_ * 15 / 16);
  }
  // Each long turn adds kWaitsRemembered, so it has decayed after that many waits.
  busy_ -= busy_ > 0 ? 1 : 0;
  if (++quiet_ == kManyWaits) {
    staying_.forget();
  }
}

bool SpinThenPark::leaves() noexcept {
  // Before the first yield no other thread has had a turn. Before the first wait has ended there is
  // no measure of this thread's own work.
  if (!may_leave_ || !yielded_ || std::exchange(has_moved_, false) || ended_ == Deadline{} ||
      turn_ < kLeastTurn || turn_ * 100 < worked_ * kShareOfWork) {
    return false;
  }
  quiet_ = 0;
  if (busy_ > kManyLongTurns || staying_.skips()) {
    return false;
  }
  // A move may not help.
  staying_.was_fruitless();
  has_moved_ = true;
  ++times_left_;
  return true;
}

// The first call fails on a machine with more processors than a cpu_set_t can hold. Linux remembers
// the last mask that was requested, and a container that is given more processors later grants a
// thread only the requested ones. Therefore the thread requests all possible processors, and the
// earlier mask only where that yields a different set.
void leave_processor() noexcept {
  cpu_set_t before;
  const int here = ::sched_getcpu();
  if (here < 0 || ::sched_getaffinity(0, sizeof before, &before) != 0) {
    return;
  }
  cpu_set_t others = before;
  CPU_CLR(static_cast<unsigned>(here), &others);
  if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(0, sizeof others, &others) != 0) {
    return;
  }
  cpu_set_t every;
  std::memset(&every, 0xFF, sizeof every);
  cpu_set_t now;
  if (::sched_setaffinity(0, sizeof every, &every) != 0 ||
      ::sched_getaffinity(0, sizeof now, &now) != 0 || CPU_EQUAL(&now, &before) == 0) {
    static_cast<void>(::sched_setaffinity(0, sizeof before, &before));
  }
}

}  // namespace disttf::net
