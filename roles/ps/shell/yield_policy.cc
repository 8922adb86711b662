#include "roles/ps/shell/yield_policy.h"

namespace disttf::roles {
namespace {

// After this many short turns the last long one counts as chance.
constexpr int kManyTurns = 32;

}  // namespace

void YieldPolicy::took(net::Clock::duration turn) noexcept {
  if (turn >= net::kLongTurn) {
    short_turns_ = 0;
    backoff_.was_fruitless();
  } else if (++short_turns_ == kManyTurns) {
    short_turns_ = 0;
    backoff_.forget();
  }
}

}  // namespace disttf::roles
