// The body of WRITE_SNAPSHOT_SHARD: which file of a checkpoint a ps writes. The step is in the
// header. encode() and decode(): net/wire/body_fields.h.
#pragma once

#include <cstdint>

#include "net/wire/body_fields.h"

namespace disttf::net {

struct WriteSnapshotShard {
  std::uint64_t attempt = 0;  // tells this save from others of its step, drawn at random
  std::uint32_t shard = 0;    // the ps's index
  std::uint32_t shards = 1;   // the number of ps, which is that of files

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("attempt", self.attempt);
    fields.u32("shard", self.shard);
    fields.u32("shards", self.shards);
    fields.require(self.shard < self.shards);
  }
  friend bool operator==(const WriteSnapshotShard&, const WriteSnapshotShard&) = default;
};

}  // namespace disttf::net
