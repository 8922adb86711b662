// The part of a shard that keeps snapshot shards, for checkpoints.
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "roles/ps/core/shard.h"

namespace disttf::roles {

// Reuses the memory of the previous snapshot shard, whose pages are mapped already, unless a reader
// still holds it.
void Shard::begin_snapshot(std::uint64_t sequence) {
  assert(!is_behind());
  // One request, one snapshot: also if there is no memory for it.
  wanted_snapshot_.reset();
  if (!snapshot_ || snapshot_.use_count() > 1) {
    try {
      auto snapshot = std::make_shared<SnapshotShard>();
      snapshot->values = math::AlignedVector::for_overwrite(state_size());
      snapshot_ = std::move(snapshot);
    } catch (const std::bad_alloc&) {
      return;  // training goes on; a request for this snapshot finds none
    }
  }
  // Only the name is set here. The tensors are copied in pieces, or at once before the next update.
  snapshot_->sequence = sequence;
  snapshot_->step = step_;
  snapshot_copied_ = 0;
}

bool Shard::copy_snapshot(std::size_t floats) {
  if (!snapshot_ || snapshot_copied_ == snapshot_->values.size()) {
    return false;
  }
  const std::size_t end =
      snapshot_copied_ + std::min(floats, snapshot_->values.size() - snapshot_copied_);
  // One piece may span several tensors, and begin in the middle of one.
  std::size_t begin = 0;  // of the tensor, in the snapshot
  const auto copy = [&](std::span<const float> tensor) {
    const std::size_t until = std::min(end, begin + tensor.size());
    if (snapshot_copied_ < until) {
      std::copy(tensor.data() + (snapshot_copied_ - begin), tensor.data() + (until - begin),
                snapshot_->values.data() + snapshot_copied_);
      snapshot_copied_ = until;
    }
    begin += tensor.size();
  };
  copy(newest());
  for (const math::StateTensor& tensor : optimizer_.state()) {
    copy(tensor.values);
  }
  return true;
}

std::shared_ptr<const SnapshotShard> Shard::snapshot() {
  // A reader that has not waited for all pieces gets the missing ones here.
  finish_snapshot();
  return snapshot_;
}

std::optional<SnapshotShardName> Shard::snapshot_name() const noexcept {
  return snapshot_ ? std::optional(SnapshotShardName{.sequence = snapshot_->sequence,
                                                     .step = snapshot_->step})
                   : std::nullopt;
}

void Shard::want_snapshot(std::uint64_t sequence, std::uint64_t step) {
  // The pull may arrive after the step was made, by other trainers' gradients.
  if (step <= step_) {
    begin_snapshot(sequence);
  } else {
    wanted_snapshot_ = sequence;
  }
}

}  // namespace disttf::roles
