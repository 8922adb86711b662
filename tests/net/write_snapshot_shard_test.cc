#include "net/wire/write_snapshot_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/frame.h"

namespace disttf::net {
namespace {

constexpr WriteSnapshotShard kExampleShard{.attempt = 0x0123456789ABCDEF, .shard = 1, .shards = 2};

std::vector<std::uint8_t> values(std::span<const std::byte> bytes) {
  std::vector<std::uint8_t> values;
  for (const std::byte byte : bytes) values.push_back(std::to_integer<std::uint8_t>(byte));
  return values;
}

TEST(WriteSnapshotShard, HasTheBytesOfTheDocument) {
  const std::vector<std::byte> body = encode(kExampleShard);
  std::array<std::byte, kHeaderBytes> header{};
  encode_header({.kind = FrameKind::kWriteSnapshotShard,
                 .request_id = 4,
                 .body_size = body.size(),
                 .step = 400,
                 .sequence = 37,
                 .generation = 1},
                header);
  const std::vector<std::uint8_t> golden_header = {
      'D',  'T',  'F',  '1',  0x07, 0x17, 0x00, 0x00,  // magic, version, kind, flags
      0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // request_id
      0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // body_size 16
      0x90, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // step 400
      0x25, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // sequence 37
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // range_begin
      0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // generation
      0x00, 0x00, 0x00, 0x00, 0xDD, 0x35, 0xA4, 0x0A,  // place, header_crc
  };
  const std::vector<std::uint8_t> golden_body = {
      0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01,  // attempt
      0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,  // shard 1 of 2
  };
  EXPECT_EQ(values(header), golden_header);
  EXPECT_EQ(values(body), golden_body);
}

TEST(WriteSnapshotShard, SurvivesARoundTrip) {
  WriteSnapshotShard out;
  ASSERT_FALSE(decode(encode(kExampleShard), out));
  EXPECT_EQ(out, kExampleShard);
}

TEST(WriteSnapshotShard, RejectsEveryOtherLength) {
  std::vector<std::byte> bytes = encode(kExampleShard);
  WriteSnapshotShard out;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::span(bytes).first(size), out), WireError::kBadBody) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody);
  EXPECT_EQ(out, WriteSnapshotShard{}) << "a rejected body changed the output";
}

TEST(WriteSnapshotShard, RejectsAShardThatIsNoneOfThem) {
  WriteSnapshotShard out;
  EXPECT_EQ(decode(encode(WriteSnapshotShard{.shard = 2, .shards = 2}), out), WireError::kBadBody);
  EXPECT_EQ(decode(encode(WriteSnapshotShard{.shard = 0, .shards = 0}), out), WireError::kBadBody);
  EXPECT_EQ(out, WriteSnapshotShard{});
}

}  // namespace
}  // namespace disttf::net
