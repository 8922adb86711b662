#include "net/wire/snapshot_messages.h"

#include <gtest/gtest.h>

#include "tests/net/message_test.h"

namespace disttf::net {
namespace {

TEST(SnapshotMessages, SnapshotShardRequest) {
  expect_message(
      SnapshotShardRequest{
          .request_id = 4, .name = 37, .now = true, .with_tensors = true, .generation = 3},
      "44544631071204000400000000000000"
      "00000000000000000000000000000000"
      "25000000000000000000000000000000"
      "030000000000000000000000598004cc",
      {.flags = kFlagSnapshot, .sequence = 1, .generation = 1});
  expect_message(SnapshotShardRequest{.request_id = 4, .name = 37, .generation = 3},
                 "44544631071600000400000000000000"
                 "00000000000000000000000000000000"
                 "25000000000000000000000000000000"
                 "030000000000000000000000c1ea9c42",
                 {.flags = kFlagSnapshot, .sequence = 1, .generation = 1});
}

TEST(SnapshotMessages, SnapshotShardReply) {
  expect_message(
      SnapshotShardReply{
          .request_id = 4, .step = 40, .name = 37, .range_begin = 1024, .generation = 3},
      "44544631071300000400000000000000"
      "00000000000000002800000000000000"
      "25000000000000000004000000000000"
      "030000000000000000000000a4ebaa68",
      {.flags = kFlagFinished, .step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
  expect_message(
      SnapshotShardReply{
          .request_id = 4, .step = 400, .range_begin = 1024, .generation = 3, .is_result = true},
      "44544631071301000400000000000000"
      "00000000000000009001000000000000"
      "00000000000000000004000000000000"
      "0300000000000000000000007ce59178",
      {.flags = kFlagFinished, .step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
}

TEST(SnapshotMessages, Watch) {
  expect_message(Watch{.request_id = 4, .step = 400},
                 "44544631072a00000400000000000000"
                 "00000000000000009001000000000000"
                 "00000000000000000000000000000000"
                 "0000000000000000000000004cf255d8",
                 {.step = 1});
}

TEST(SnapshotMessages, WriteSnapshotShardRequest) {
  expect_message(
      WriteSnapshotShardRequest{.request_id = 4, .step = 400, .name = 37, .generation = 1},
      "44544631071700000400000000000000"
      "00000000000000009001000000000000"
      "25000000000000000000000000000000"
      "0100000000000000000000003eb9b4c5",
      {.step = 1, .sequence = 1, .generation = 1});
}

}  // namespace
}  // namespace disttf::net
