#include "math/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <system_error>

namespace disttf::math {
namespace {

// Spins until is_there(), yielding to other threads; false when that has taken `most`.
template <typename IsThere>
bool look_for(IsThere is_there, std::chrono::microseconds most) noexcept {
  const auto until = std::chrono::steady_clock::now() + most;
  while (!is_there()) {
    if (std::chrono::steady_clock::now() >= until) {
      return false;
    }
    ::sched_yield();
  }
  return true;
}

}  // namespace

ThreadPool::ThreadPool(std::size_t members, std::chrono::microseconds look) : look_(look) {
  assert(members > 0);
  threads_.reserve(members - 1);
  try {
    for (std::size_t member = 1; member < members; ++member) {
      threads_.emplace_back([this, member] { serve(member); });
    }
  } catch (const std::system_error&) {
    // Continues with the threads that there are.
  }
}

ThreadPool::~ThreadPool() {
  // Set before the round changes: a thread that wakes up for the new round must find it.
  stopped_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::run(Work work, std::size_t parts) noexcept {
  // A single part needs no other thread, and waking one would take longer.
  if (threads_.empty() || parts < 2) {
    for (std::size_t number = 0; number < parts; ++number) {
      work.call(work.what, number, 0);
    }
    return;
  }
  const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  work_ = work;
  // Relaxed is enough: the two release stores below publish everything that precedes them.
  done_.store(0, std::memory_order_relaxed);
  parts_.store(static_cast<std::uint32_t>(parts), std::memory_order_relaxed);
  // Stored last: a thread that sees the new round also sees the work.
  next_.store(std::uint64_t{round} << 32U, std::memory_order_release);
  round_.store(round, std::memory_order_release);
  round_.notify_all();
  take_parts(round, 0);
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == parts; };
  while (!look_for(all_done, kLook)) {
    // A member still computes the last part; waiting for it needs no notification.
  }
}

void ThreadPool::take_parts(std::uint32_t round, std::size_t member) noexcept {
  std::uint64_t next = next_.load(std::memory_order_acquire);
  while (next >> 32U == round) {
    // A late thread can read `parts_` of a newer round here. It then returns, or its exchange
    // fails, because the round is a part of `next_`.
    const auto number = static_cast<std::uint32_t>(next);
    if (number >= parts_.load(std::memory_order_relaxed)) {
      return;
    }
    if (next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      work_.call(work_.what, number, member);
      // Release: the caller that counts this part also sees what the part wrote.
      done_.fetch_add(1, std::memory_order_release);
      next = next_.load(std::memory_order_acquire);
    }
  }
}

void ThreadPool::serve(std::size_t member) noexcept {
  std::uint32_t seen = 0;
  while (true) {
    // The wait returns at once if the round has changed since the last look, so no round is missed.
    if (!look_for([&] { return round_.load(std::memory_order_acquire) != seen; }, look_)) {
      round_.wait(seen, std::memory_order_acquire);
    }
    seen = round_.load(std::memory_order_acquire);
    // Only the destructor stops, after the last run() has returned, so no part is lost.
    if (stopped_) {
      return;
    }
    take_parts(seen, member);
  }
}

EvenParts::EvenParts(std::size_t size, std::size_t unit, std::size_t members) noexcept
    : size_(size),
      unit_(unit),
      units_((size + unit - 1) / unit),
      // At least one part even of nothing, because begin() divides by the count.
      count_(std::min(std::max(units_, std::size_t{1}), members)) {}

std::size_t EvenParts::begin(std::size_t number) const noexcept {
  return std::min(size_, units_ * number / count_ * unit_);
}

}  // namespace disttf::math
