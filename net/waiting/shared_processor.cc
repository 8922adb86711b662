#include "net/waiting/shared_processor.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace disttf::net {
namespace {

// A turn of a similar trainer takes about as long as this thread's own work. A turn of a ps, which
// makes an update or part of it, is shorter. The move itself takes longer than the shortest turns.
constexpr int kShareOfWork = 60;  // in hundredths
constexpr std::chrono::microseconds kLeastTurn{20};
// A turn of a program that always computes is three milliseconds or more.
constexpr std::chrono::microseconds kBusyTurn{1000};
// How many waits a long turn is remembered for, and the bound for all of them. Two may be chance.
constexpr unsigned kWaitsRemembered = 1024;
constexpr unsigned kMostRemembered = 8 * kWaitsRemembered;
constexpr unsigned kManyLongTurns = 2 * kWaitsRemembered;
// After so many undisturbed waits an earlier detection counts as chance.
constexpr unsigned kManyWaits = 64;
constexpr unsigned kMostStaying = 63;

}  // namespace

void SharedProcessor::wait_begins(Deadline now) noexcept {
  has_moved_ = false;
  if (ended_ != Deadline{}) {
    // Most of the several waits of one step have no work before them, so a decaying maximum is
    // kept.
    worked_ = std::max(now - ended_, worked_ * 15 / 16);
  }
  // Each long turn adds kWaitsRemembered, so it has decayed after that many waits.
  busy_ -= busy_ > 0 ? 1 : 0;
  if (++quiet_ == kManyWaits) {
    penalty_ = 0;
  }
}

// A long turn right after a move is the move itself and does not count.
void SharedProcessor::gave_up(Clock::duration turn) noexcept {
  if (turn >= kBusyTurn && !std::exchange(has_moved_, false)) {
    busy_ = std::min(busy_ + kWaitsRemembered, kMostRemembered);
  }
}

bool SharedProcessor::leaves_after(Clock::duration turn) noexcept {
  // Before the first wait has ended there is no measure of this thread's own work.
  if (std::exchange(has_moved_, false) || ended_ == Deadline{} || turn < kLeastTurn ||
      turn * 100 < worked_ * kShareOfWork) {
    return false;
  }
  quiet_ = 0;
  if (busy_ > kManyLongTurns) {
    return false;
  }
  if (staying_ > 0) {
    --staying_;
    return false;
  }
  // Exponential back-off, because a move may not help.
  penalty_ = std::min(2 * penalty_ + 1, kMostStaying);
  staying_ = penalty_;
  has_moved_ = true;
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
