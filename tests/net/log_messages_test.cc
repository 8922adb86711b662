#include "net/wire/log_messages.h"

#include <gtest/gtest.h>

#include "tests/net/message_test.h"

namespace disttf::net {
namespace {

TEST(LogMessages, PublishToBackup) {
  const PublishToBackup message{.view = {.chief = 0x123456789abcdef, .count = 6}, .generation = 3};
  expect_message(message,
                 "44544631070400000000000000000000"
                 "0000000000000000efcdab8967452301"
                 "06000000000000000000000000000000"
                 "03000000000000000000000026f5ad1f",
                 {.step = 1, .sequence = 1, .generation = 1});
  FrameHeader header = message.to_header();
  header.sequence = std::uint64_t{1} << 32U;
  PublishToBackup out;
  EXPECT_EQ(out.from_header(header), WireError::kBadReserved);
  header = message.to_header();
  header.request_id = 1;
  EXPECT_EQ(out.from_header(header), WireError::kBadReserved);
}

TEST(LogMessages, Fill) {
  expect_message(Fill{.entry = 4, .step = 7, .range_begin = 1024, .generation = 3},
                 "44544631071e00000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000004000000000000"
                 "03000000000000000000000042f0f50d",
                 {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
  expect_message(
      Fill{.entry = 4, .step = 7, .range_begin = 1024, .generation = 3, .finished = true},
      "44544631071e01000400000000000000"
      "00000000000000000700000000000000"
      "00000000000000000004000000000000"
      "030000000000000000000000f459500c",
      {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
}

TEST(LogMessages, Update) {
  expect_message(Update{.entry = 4, .step = 7, .push = 9, .range_begin = 1024, .generation = 3},
                 "44544631071f00000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000004000000000000"
                 "030000000000000000000000a756ec23",
                 {.step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
}

TEST(LogMessages, Complete) {
  expect_message(Complete{.entry = 4, .generation = 3},
                 "44544631072000000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0300000000000000000000002da6b069",
                 {.generation = 1});
}

TEST(LogMessages, Conclude) {
  expect_message(Conclude{.entry = 4, .step = 7, .generation = 3},
                 "44544631072b00000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000000000000000000"
                 "030000000000000000000000b5ce6898",
                 {.step = 1, .generation = 1});
}

}  // namespace
}  // namespace disttf::net
