#include "net/wire/write_snapshot_shard.h"

#include "net/wire/codec.h"
#include "net/wire/frame.h"

namespace disttf::net {

std::vector<std::byte> encode(const WriteSnapshotShard& shard_file) {
  ByteWriter body(kWriteSnapshotShardBytes);
  body.put(shard_file.attempt);
  body.put(shard_file.shard);
  body.put(shard_file.shards);
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, WriteSnapshotShard& out) {
  ByteReader reader(body);
  WriteSnapshotShard shard_file;
  shard_file.attempt = reader.get<std::uint64_t>();
  shard_file.shard = reader.get<std::uint32_t>();
  shard_file.shards = reader.get<std::uint32_t>();
  // Implies that there is at least one shard.
  if (!reader.complete() || shard_file.shard >= shard_file.shards) {
    return WireError::kBadBody;
  }
  out = shard_file;
  return {};
}

}  // namespace disttf::net
