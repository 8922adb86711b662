// Virtual time for tests.
#pragma once

namespace disttf::roles {

// Advances `core`'s time from `now` to `end`, deadline by deadline, and calls `take_effects` after
// each.
template <typename Core, typename TimePoint, typename TakeEffects>
void pass_time(Core& core, TimePoint& now, TimePoint end, TakeEffects take_effects) {
  while (core.deadline() <= end) {
    now = core.deadline();
    core.time(now);
    take_effects();
  }
  now = end;
}

}  // namespace disttf::roles
