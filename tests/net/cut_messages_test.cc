#include "net/wire/cut_messages.h"

#include <gtest/gtest.h>

#include "tests/net/message_test.h"

namespace disttf::net {
namespace {

TEST(CutMessages, CutRequest) {
  expect_message(
      CutRequest{.request_id = 4, .name = 37, .now = true, .with_tensors = true, .generation = 3},
      "44544631061204000400000000000000"
      "00000000000000000000000000000000"
      "25000000000000000000000000000000"
      "0300000000000000000000008e9391d1",
      {.flags = kFlagCut, .sequence = 1, .generation = 1});
  expect_message(CutRequest{.request_id = 4, .name = 37, .generation = 3},
                 "44544631061600000400000000000000"
                 "00000000000000000000000000000000"
                 "25000000000000000000000000000000"
                 "03000000000000000000000016f9095f",
                 {.flags = kFlagCut, .sequence = 1, .generation = 1});
}

TEST(CutMessages, CutReply) {
  expect_message(
      CutReply{.request_id = 4, .step = 40, .name = 37, .range_begin = 1024, .generation = 3},
      "44544631061300000400000000000000"
      "00000000000000002800000000000000"
      "25000000000000000004000000000000"
      "03000000000000000000000073f83f75",
      {.flags = kFlagFinished, .step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
  expect_message(
      CutReply{
          .request_id = 4, .step = 400, .range_begin = 1024, .generation = 3, .is_result = true},
      "44544631061301000400000000000000"
      "00000000000000009001000000000000"
      "00000000000000000004000000000000"
      "030000000000000000000000abf60465",
      {.flags = kFlagFinished, .step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
}

TEST(CutMessages, Watch) {
  expect_message(Watch{.request_id = 4, .step = 400},
                 "44544631062a00000400000000000000"
                 "00000000000000009001000000000000"
                 "00000000000000000000000000000000"
                 "0000000000000000000000009be1c0c5",
                 {.step = 1});
}

TEST(CutMessages, WriteCutRequest) {
  expect_message(WriteCutRequest{.request_id = 4, .step = 400, .name = 37, .generation = 1},
                 "44544631061700000400000000000000"
                 "00000000000000009001000000000000"
                 "25000000000000000000000000000000"
                 "010000000000000000000000e9aa21d8",
                 {.step = 1, .sequence = 1, .generation = 1});
}

}  // namespace
}  // namespace disttf::net
