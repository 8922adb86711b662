#include "roles/ps/core/snapshot_keeper.h"

#include <algorithm>
#include <new>
#include <utility>

namespace disttf::roles {

// Reuses the memory of the previous snapshot shard, whose pages are mapped already, unless a reader
// still holds it.
void SnapshotKeeper::begin(std::uint64_t sequence, std::uint64_t step, ShardStorage& storage) {
  // One request, one snapshot: also if there is no memory for it.
  wanted_.reset();
  if (!snapshot_ || snapshot_.use_count() > 1) {
    try {
      auto snapshot = std::make_shared<SnapshotShard>();
      snapshot->values = math::AlignedVector::for_overwrite(storage.state_size());
      snapshot_ = std::move(snapshot);
    } catch (const std::bad_alloc&) {
      return;  // training goes on; a request for this snapshot finds none
    }
  }
  // Only the name is set here. The tensors are copied in pieces, or at once before the next update.
  snapshot_->sequence = sequence;
  snapshot_->step = step;
  copied_ = 0;
}

void SnapshotKeeper::begin_wanted(std::uint64_t step, ShardStorage& storage) {
  if (wanted_) {
    begin(*wanted_, step, storage);
  }
}

bool SnapshotKeeper::copy(std::size_t floats, ShardStorage& storage) {
  if (!snapshot_ || copied_ == snapshot_->values.size()) {
    return false;
  }
  const std::size_t end = copied_ + std::min(floats, snapshot_->values.size() - copied_);
  // One piece may span several tensors, and begin in the middle of one.
  std::size_t begin = 0;  // of the tensor, in the snapshot
  storage.for_each_tensor([&](std::span<const float> tensor) {
    const std::size_t until = std::min(end, begin + tensor.size());
    if (copied_ < until) {
      std::copy(tensor.data() + (copied_ - begin), tensor.data() + (until - begin),
                snapshot_->values.data() + copied_);
      copied_ = until;
    }
    begin += tensor.size();
  });
  return true;
}

void SnapshotKeeper::drop() noexcept {
  wanted_.reset();
  snapshot_.reset();
}

std::shared_ptr<const SnapshotShard> SnapshotKeeper::whole(ShardStorage& storage) {
  // A reader that has not waited for all pieces gets the missing ones here.
  finish(storage);
  return snapshot_;
}

std::optional<SnapshotShardName> SnapshotKeeper::name() const noexcept {
  return snapshot_ ? std::optional(SnapshotShardName{.sequence = snapshot_->sequence,
                                                     .step = snapshot_->step})
                   : std::nullopt;
}

}  // namespace disttf::roles
