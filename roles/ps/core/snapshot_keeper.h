// Keeps the newest snapshot shard of a shard, for checkpoints. It does not delay training: the
// tensors are copied piece by piece, and the rest before the state changes or when the snapshot is
// fetched.
//
// Not thread-safe: the ps's only thread owns it. `storage`, in each call: the shard's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "roles/ps/core/shard_storage.h"
#include "run/training_state.h"

namespace disttf::roles {

class SnapshotKeeper {
 public:
  // Requests a snapshot of the state that the next step leads to, for the push of this sequence.
  void want(std::uint64_t sequence) noexcept { wanted_ = sequence; }
  // Begins a snapshot of the current state, which is that of `step`.
  void begin(std::uint64_t sequence, std::uint64_t step, ShardStorage& storage);
  // The same if one was requested: the step has been made.
  void begin_wanted(std::uint64_t step, ShardStorage& storage);
  // Copies at most `floats` floats of an incomplete snapshot. Returns false if there is none.
  bool copy(std::size_t floats, ShardStorage& storage);
  // Copies the rest. To be called before the state changes.
  void finish(ShardStorage& storage) { copy(SIZE_MAX, storage); }
  // The state has been replaced: there is no snapshot of the new one.
  void drop() noexcept;

  // Returns the newest snapshot, whole, if one was requested since drop(); its sequence and step.
  [[nodiscard]] std::shared_ptr<const SnapshotShard> whole(ShardStorage& storage);
  [[nodiscard]] std::optional<SnapshotShardName> name() const noexcept;

 private:
  std::optional<std::uint64_t> wanted_;      // by the push with this sequence
  std::shared_ptr<SnapshotShard> snapshot_;  // constant while it is shared
  std::size_t copied_ = 0;                   // floats of it
};

}  // namespace disttf::roles
