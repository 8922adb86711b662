#include "roles/ps/shell/giving_way.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

namespace disttf::roles {
namespace {

using net::Clock;

// Frames that are so close come from trainers that have little to compute, or are many.
constexpr std::chrono::microseconds kClose{50};
// Of so many newest frames the distance is a mean.
constexpr int kRecent = 16;
// Longer than all trainers that share a processor need for pushing, less than a turn of a program
// that always has something to compute, three milliseconds or more.
constexpr std::chrono::milliseconds kLongTurn{2};
// After so many short turns a long one before them was chance.
constexpr int kManyTurns = 32;
constexpr unsigned kMostAsleep = 63;

}  // namespace

void GivingWay::came(std::size_t count, Clock::time_point now) noexcept {
  assert(count > 0);
  // (However long nothing came, a few that come close tell.)
  const Clock::duration since = std::min(now - std::exchange(came_, now), kFar);
  distance_ += (since / static_cast<Clock::rep>(count) - distance_) / kRecent;
}

bool GivingWay::begins() noexcept {
  if (!has_room_ && distance_ >= kClose) {
    return false;
  }
  if (asleep_ > 0) {
    --asleep_;
    return false;
  }
  return true;
}

void GivingWay::took(Clock::duration turn) noexcept {
  if (turn >= kLongTurn) {
    short_turns_ = 0;
    penalty_ = std::min(2 * penalty_ + 1, kMostAsleep);
    asleep_ = penalty_;
  } else if (++short_turns_ == kManyTurns) {
    short_turns_ = 0;
    penalty_ = 0;
  }
}

}  // namespace disttf::roles
