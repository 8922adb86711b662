#include "roles/ps/shell/giving_way.h"

#include <algorithm>
#include <chrono>

namespace disttf::roles {
namespace {

// Longer than trainers that share a processor need for pushing, or for the gradient of a small
// model; less than the turn of a program that always has something to compute, three milliseconds
// or more.
constexpr std::chrono::milliseconds kLongTurn{1};
// After so many short turns a long one before them was chance.
constexpr int kManyTurns = 32;
constexpr unsigned kMostAsleep = 63;

}  // namespace

bool GivingWay::begins() noexcept {
  if (asleep_ > 0) {
    --asleep_;
    return false;
  }
  return true;
}

void GivingWay::took(net::Clock::duration turn) noexcept {
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
