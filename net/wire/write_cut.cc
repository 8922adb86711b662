#include "net/wire/write_cut.h"

#include "net/wire/codec.h"
#include "net/wire/frame.h"

namespace disttf::net {

std::vector<std::byte> encode(const WriteCut& order) {
  ByteWriter body(kWriteCutBytes);
  body.put(order.attempt);
  body.put(order.shard);
  body.put(order.shards);
  return std::move(body).take();
}

std::error_code decode(std::span<const std::byte> body, WriteCut& out) {
  ByteReader reader(body);
  WriteCut order;
  order.attempt = reader.get<std::uint64_t>();
  order.shard = reader.get<std::uint32_t>();
  order.shards = reader.get<std::uint32_t>();
  if (!reader.complete() || order.shard >= order.shards) {
    return WireError::kBadBody;
  }
  out = order;
  return {};
}

}  // namespace disttf::net
