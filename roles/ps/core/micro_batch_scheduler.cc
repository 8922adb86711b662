#include "roles/ps/core/micro_batch_scheduler.h"

#include <algorithm>
#include <cassert>

namespace disttf::roles {
namespace {

using Activity = MicroBatchScheduler::Activity;

std::size_t count_present(std::span<const Activity> activities) {
  return activities.size() -
         static_cast<std::size_t>(std::ranges::count(activities, Activity::kAway));
}

}  // namespace

void MicroBatchScheduler::begin_step(std::span<const Activity> activities) {
  const std::size_t present = count_present(activities);
  // With too few trainers the step is not scheduled; its micro-batches are assigned once enough
  // wait.
  const bool is_scheduled = present >= least_;
  std::uint32_t next = 0;
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    trainers_[rank].share = {};
    // Shares are interleaved, so that no trainer gets more than one micro-batch more than another.
    if (is_scheduled && activities[rank] != Activity::kAway) {
      trainers_[rank].share = {.first = next++, .stride = static_cast<std::uint32_t>(present)};
    }
  }
}

bool MicroBatchScheduler::is_stuck(std::span<const Activity> activities) const {
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    // A trainer that owes nothing but still computes may be about to send what is missing.
    const bool owes = trainers_[rank].owed != 0;
    if (activities[rank] == Activity::kComputes || (activities[rank] == Activity::kWaits && owes)) {
      return false;
    }
  }
  // max(): without any trainer there is none to assign to.
  return count_present(activities) >= std::max<std::size_t>(least_, 1);
}

std::vector<MicroBatchScheduler::Assignment> MicroBatchScheduler::assign(
    std::span<const Activity> activities, std::span<const std::size_t> missing) {
  assert(is_stuck(activities));
  std::vector<Assignment> assignments;
  // Begin with rank 0: the loop advances before it looks.
  std::size_t rank = trainers_.size() - 1;
  for (const std::size_t micro_batch : missing) {
    // The loop ends, since is_stuck() requires at least one present trainer.
    do {
      rank = (rank + 1) % trainers_.size();
    } while (activities[rank] == Activity::kAway);
    // Counted, so that the same micro-batch is not assigned again while it is computed.
    ++trainers_[rank].owed;
    assignments.push_back({.rank = rank, .micro_batch = micro_batch});
  }
  return assignments;
}

void MicroBatchScheduler::came(std::size_t rank) noexcept {
  // A share is not counted as owed, so the count may be 0 already.
  trainers_[rank].owed -= std::min<std::size_t>(trainers_[rank].owed, 1);
}

}  // namespace disttf::roles
