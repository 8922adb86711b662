#include "net/wire/snapshot_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/frame.h"
#include "tests/net/wire_bytes.h"

namespace disttf::net {
namespace {

TEST(SnapshotMessages, SnapshotShardRequest) {
  expect_message(
      SnapshotShardRequest{
          .request_id = 4, .name = 37, .now = true, .with_tensors = true, .generation = 3},
      "4454463107120400040000000000000000000000000000000000000000000000"
      "25000000000000000000000000000000030000000000000000000000598004cc",
      {.flags = kFlagSnapshot, .sequence = 1, .generation = 1});
  expect_message(SnapshotShardRequest{.request_id = 4, .name = 37, .generation = 3},
                 "4454463107160000040000000000000000000000000000000000000000000000"
                 "25000000000000000000000000000000030000000000000000000000c1ea9c42",
                 {.flags = kFlagSnapshot, .sequence = 1, .generation = 1});
}

TEST(SnapshotMessages, SnapshotShardReply) {
  expect_message(
      SnapshotShardReply{
          .request_id = 4, .step = 40, .name = 37, .range_begin = 1024, .generation = 3},
      "4454463107130000040000000000000000000000000000002800000000000000"
      "25000000000000000004000000000000030000000000000000000000a4ebaa68",
      {.flags = kFlagFinished, .step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
  expect_message(
      SnapshotShardReply{
          .request_id = 4, .step = 400, .range_begin = 1024, .generation = 3, .is_result = true},
      "4454463107130100040000000000000000000000000000009001000000000000"
      "000000000000000000040000000000000300000000000000000000007ce59178",
      {.flags = kFlagFinished, .step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
}

TEST(SnapshotMessages, Watch) {
  expect_message(Watch{.request_id = 4, .step = 400},
                 "44544631072a0000040000000000000000000000000000009001000000000000"
                 "000000000000000000000000000000000000000000000000000000004cf255d8",
                 {.step = 1});
}

TEST(SnapshotMessages, WriteSnapshotShardRequest) {
  expect_message(
      WriteSnapshotShardRequest{.request_id = 4, .step = 400, .name = 37, .generation = 1},
      "4454463107170000040000000000000000000000000000009001000000000000"
      "250000000000000000000000000000000100000000000000000000003eb9b4c5",
      {.step = 1, .sequence = 1, .generation = 1});
}

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
