#include "roles/ps/shell/giving_way.h"

namespace disttf::roles {
namespace {

// After this many short turns the last long one counts as chance.
constexpr int kManyTurns = 32;

}  // namespace

void GivingWay::took(net::Clock::duration turn) noexcept {
  if (turn >= net::kLongTurn) {
    short_turns_ = 0;
    asleep_.was_in_vain();
  } else if (++short_turns_ == kManyTurns) {
    short_turns_ = 0;
    asleep_.forget();
  }
}

}  // namespace disttf::roles
