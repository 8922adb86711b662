#include "net/wire/log_messages.h"

#include <gtest/gtest.h>

#include "tests/net/message_test.h"

namespace disttf::net {
namespace {

TEST(LogMessages, PublishToBackup) {
  const PublishToBackup message{.view = {.chief = 0x123456789abcdef, .count = 6}, .generation = 3};
  expect_message(message,
                 "44544631050400000000000000000000"
                 "0000000000000000efcdab8967452301"
                 "06000000000000000000000000000000"
                 "03000000000000000000000088d28724",
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
                 "44544631051e00000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000004000000000000"
                 "030000000000000000000000ecd7df36",
                 {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
  expect_message(
      Fill{.entry = 4, .step = 7, .range_begin = 1024, .generation = 3, .finished = true},
      "44544631051e01000400000000000000"
      "00000000000000000700000000000000"
      "00000000000000000004000000000000"
      "0300000000000000000000005a7e7a37",
      {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
}

TEST(LogMessages, Update) {
  expect_message(Update{.entry = 4, .step = 7, .push = 9, .range_begin = 1024, .generation = 3},
                 "44544631051f00000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000004000000000000"
                 "0300000000000000000000000971c618",
                 {.step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
}

TEST(LogMessages, Complete) {
  expect_message(Complete{.entry = 4, .generation = 3},
                 "44544631052000000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "03000000000000000000000083819a52",
                 {.generation = 1});
}

TEST(LogMessages, Conclude) {
  expect_message(Conclude{.entry = 4, .step = 7, .generation = 3},
                 "44544631052b00000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000000000000000000"
                 "0300000000000000000000001be942a3",
                 {.step = 1, .generation = 1});
}

}  // namespace
}  // namespace disttf::net
