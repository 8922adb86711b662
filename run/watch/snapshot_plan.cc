#include "run/watch/snapshot_plan.h"

#include <algorithm>

namespace disttf::roles {
namespace {

// The steps of about a second with the smallest models. Further ahead would mean a long wait.
constexpr std::uint64_t kMostAhead = 4096;

}  // namespace

void SnapshotPlan::saw(std::uint64_t step) noexcept { newest_ = std::max(newest_, step); }

std::uint64_t SnapshotPlan::begin() noexcept {
  const State was = state();
  // Back off quickly when ps were faster than expected, and approach slowly.
  if (was == State::kTorn) {
    ahead_ = std::min(2 * ahead_, kMostAhead);
  } else if (was == State::kWhole) {
    ahead_ = std::max<std::uint64_t>(ahead_ / 2, 1);
  }
  drop_parts();
  // Ahead of the newest step that any ps has named: a ps that is past it answers at once, with
  // another step than the others.
  return newest_ + ahead_;
}

void SnapshotPlan::took(std::size_t index, const Part& part) {
  parts_.at(index) = part;
  saw(part.step);
}

SnapshotPlan::State SnapshotPlan::state() const noexcept {
  const auto is_last = [](const std::optional<Part>& part) { return part && part->is_last; };
  // A range may end before the others have: its shard waits for theirs.
  if (std::ranges::any_of(parts_, is_last)) {
    return std::ranges::all_of(parts_, is_last) ? State::kResult : State::kIncomplete;
  }
  const std::optional<Part>& first = parts_.front();
  bool is_one = true;
  for (const std::optional<Part>& part : parts_) {
    if (!part) {
      return State::kIncomplete;
    }
    // Of one step, but of two generations, the ranges do not fit together.
    is_one = is_one && part->step == first->step && part->generation == first->generation;
  }
  return is_one ? State::kWhole : State::kTorn;
}

void SnapshotPlan::lost() noexcept {
  drop_parts();
  newest_ = 0;  // a ps that was rolled back is at an earlier step
}

void SnapshotPlan::drop_parts() noexcept {
  for (std::optional<Part>& part : parts_) {
    // A shard of the result stays valid, and its ps is not asked again.
    if (part && !part->is_last) {
      part.reset();
    }
  }
}

}  // namespace disttf::roles
