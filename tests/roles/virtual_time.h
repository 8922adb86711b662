// Time that a test makes.
#pragma once

namespace disttf::roles {

// Lets `core`'s time pass from `now` to `end`: each of its deadlines in its turn, after each of
// which `take_effects` is called.
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
