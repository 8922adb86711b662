// A snapshot shard: the training state of a ps's range at one step boundary, kept while training
// goes on.
#pragma once

#include <cstdint>

#include "math/aligned.h"

namespace disttf::roles {

// Identifies a snapshot shard.
struct SnapshotShardName {
  std::uint64_t sequence = 0;  // of the push that requested it
  std::uint64_t step = 0;
};

struct SnapshotShard {
  std::uint64_t sequence = 0;  // of the push that requested it
  std::uint64_t step = 0;
  // [1 + optimizer tensors, range.size()]: the parameters, then each of the optimizer's tensors.
  math::AlignedVector values;
};

}  // namespace disttf::roles
