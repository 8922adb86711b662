#include "tests/sim/witnesses.h"

#include <algorithm>

namespace disttf::sim {

void Witnesses::hears(std::uint64_t process, std::size_t range, net::ViewNumber view) {
  Views& views = known_[{process, range}].views;
  if (!views.insert(view).second) {
    return;
  }
  if (const auto made = made_of_.find({range, view}); made != made_of_.end()) {
    views.insert(made->second.begin(), made->second.end());
  }
}

void Witnesses::tells(std::uint64_t process, std::size_t range, net::ViewNumber view) {
  Views& views = known_[{process, range}].views;
  if (views.insert(view).second) {
    made_of_[{range, view}] = views;
  }
}

void Witnesses::has_seen(std::uint64_t process, std::size_t range, const StateName& state,
                         std::uint64_t step) {
  std::uint64_t& newest = known_[{process, range}].steps[state];
  newest = std::max(newest, step);
}

void Witnesses::has_gone(std::uint64_t process) {
  std::erase_if(known_, [process](const auto& known) { return known.first.first == process; });
}

bool Witnesses::is_any_left(std::size_t range, const Views& views, const StateName& state,
                            std::uint64_t step) const {
  return std::ranges::any_of(known_, [&](const auto& known) {
    const Known& knows = known.second;
    const auto newest = knows.steps.find(state);
    return known.first.second == range &&
           ((newest != knows.steps.end() && newest->second > step) ||
            std::ranges::any_of(knows.views,
                                [&](net::ViewNumber view) { return views.contains(view); }));
  });
}

}  // namespace disttf::sim
