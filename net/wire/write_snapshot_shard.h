// The body of WRITE_SNAPSHOT_SHARD: which file of a checkpoint a ps writes.
//
//   offset  size  field
//        0     8  attempt  tells this save from others of its step, drawn at random
//        8     4  shard    the ps's index
//       12     4  shards   the number of ps, which is that of files
//
// The step is in the header. Integers are little-endian. The decoder takes untrusted bytes: another
// length, or a shard that is not below `shards`, is WireError::kBadBody, and `out` is then
// untouched. Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

namespace disttf::net {

inline constexpr std::size_t kWriteSnapshotShardBytes = 16;

struct WriteSnapshotShard {
  std::uint64_t attempt = 0;
  std::uint32_t shard = 0;
  std::uint32_t shards = 1;
  friend bool operator==(const WriteSnapshotShard&, const WriteSnapshotShard&) = default;
};

[[nodiscard]] std::vector<std::byte> encode(const WriteSnapshotShard& shard_file);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, WriteSnapshotShard& out);

}  // namespace disttf::net
