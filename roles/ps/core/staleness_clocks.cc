#include "roles/ps/core/staleness_clocks.h"

namespace disttf::roles {

void StalenessClocks::join(std::size_t trainer) {
  Trainer& joining = trainers_[trainer];
  if (joining.joined) {
    return;
  }
  joining.joined = true;
  // A trainer that has been present all the time cannot be that far behind.
  if (slowest_ && *slowest_ > joining.clock + bound_.value_or(0) + 1) {
    joining.level = *slowest_;
  }
  add(counts_from(trainer));
}

void StalenessClocks::leave(std::size_t trainer) {
  if (trainers_[trainer].joined) {
    trainers_[trainer].joined = false;
    remove(counts_from(trainer));
  }
}

void StalenessClocks::set(std::size_t trainer, std::uint64_t clock) {
  const std::uint64_t before = counts_from(trainer);
  trainers_[trainer].clock = clock;
  if (trainers_[trainer].joined) {
    // add() comes first: remove() may count all clocks anew, this one among them.
    add(counts_from(trainer));
    remove(before);
  }
}

// (The slowest trainer itself need not be excluded: it is not ahead of itself.)
bool StalenessClocks::is_held(std::size_t trainer) const {
  return bound_ && slowest_ && trainers_[trainer].clock > *slowest_ + *bound_;
}

void StalenessClocks::add(std::uint64_t counted) {
  if (!slowest_ || counted < *slowest_) {
    slowest_ = counted;
    slowest_ones_ = 0;
  }
  if (counted == *slowest_) {
    ++slowest_ones_;
  }
}

// The counted clock belongs to another trainer, or to none, by now.
void StalenessClocks::remove(std::uint64_t counted) {
  if (counted != *slowest_ || --slowest_ones_ != 0) {
    return;
  }
  // The slowest clock is gone: answers that waited for it may be due.
  ++releases_;
  slowest_.reset();
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (trainers_[rank].joined) {
      add(counts_from(rank));
    }
  }
}

}  // namespace disttf::roles
