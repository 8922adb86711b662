// The chief's part in a checkpoint that the ps write, each its range: agrees with them on a cut,
// has all of them write at once, and waits. What they have written becomes a checkpoint by
// CheckpointStore::commit_shards().
#pragma once

#include <optional>
#include <vector>

#include "net/transport/interrupt.h"
#include "roles/checkpoint/core/checkpoint_store.h"
#include "roles/chief/shell/cut_link.h"
#include "roles/run/task.h"

namespace disttf::roles {

struct WrittenShards {
  SaveId id;
  std::vector<ShardFile> files;  // by ps, each on the disk
};

// nullopt: some ps is gone, does not have the cut, or, where they must be at one step
// (`same_step`), is at another; nothing was written. Throws std::runtime_error with a sentence that
// names the ps when one of them could not write; what the others have written is removed.
// Blocks while they write, ten minutes at most; call it from a thread that may wait.
[[nodiscard]] std::optional<WrittenShards> write_shards(const Task& task, const CutRequest& cut,
                                                        bool same_step,
                                                        const CheckpointStore& directory,
                                                        const net::Interrupt& interrupt);

}  // namespace disttf::roles
