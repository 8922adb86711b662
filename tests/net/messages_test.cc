#include "net/wire/messages.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/net/message_test.h"

namespace disttf::net {
namespace {

// What a refused header leaves alone.
TEST(Messages, ARefusedHeaderChangesNothing) {
  Work work{.request_id = 1, .step = 2, .micro_batch = 3, .generation = 4};
  const Work before = work;
  EXPECT_TRUE(work.from_header({.kind = FrameKind::kWork, .step = 9, .range_begin = 1}));
  EXPECT_EQ(work, before);
}

TEST(Messages, GetConfig) {
  expect_message(GetConfig{.request_id = 4},
                 "44544631060500000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "000000000000000000000000dc6fe632",
                 {});
}

TEST(Messages, Goodbye) {
  expect_message(Goodbye{.request_id = 4, .generation = 3},
                 "44544631060c00000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "030000000000000000000000fd9017ac",
                 {.generation = 1});
}

TEST(Messages, ARequestIsOneOfSeveral) {
  const TrainerRequest request = Goodbye{.request_id = 4, .generation = 3};
  EXPECT_EQ(header_of(request), (Goodbye{.request_id = 4, .generation = 3}.to_header()));
}

TEST(Messages, Pull) {
  expect_message(Pull{.request_id = 4, .previous = true},
                 "44544631060808000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "000000000000000000000000fdc3aa5e",
                 {.flags = kFlagPrevious | kFlagFinished});
  expect_message(Pull{.request_id = 4, .concludes = true},
                 "44544631060801000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "000000000000000000000000fb272252",
                 {.flags = kFlagPrevious | kFlagFinished});
}

TEST(Messages, AwaitStep) {
  expect_message(
      AwaitStep{
          .request_id = 4, .step = 7, .push = 9, .cut = true, .generation = 3, .form = kFlagBf16},
      "44544631060854000400000000000000"
      "00000000000000000700000000000000"
      "09000000000000000000000000000000"
      "030000000000000000000000193a1501",
      {.flags = kFlagNext | kFlagCut | kTensorForms, .step = 1, .sequence = 1, .generation = 1});
  AwaitStep out;
  EXPECT_EQ(out.from_header({.kind = FrameKind::kPull}), WireError::kBadFlags) << "a plain PULL";
}

TEST(Messages, PushPull) {
  const FrameHeader may_have{.flags = kFlagCut | kFlagGroupSum | kTensorForms,
                             .step = 1,
                             .sequence = 1,
                             .range_begin = 1,
                             .generation = 1};
  expect_message(PushPull{.request_id = 4,
                          .step = 7,
                          .push = 9,
                          .cut = true,
                          .range_begin = 1024,
                          .generation = 3,
                          .form = kFlagSparse},
                 "44544631060984000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000004000000000000"
                 "0300000000000000000000000ba99a6b",
                 may_have);
  expect_message(PushPull{.request_id = 4,
                          .step = 7,
                          .push = 9,
                          .group_sum = true,
                          .range_begin = 1024,
                          .generation = 3},
                 "44544631060900040400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000004000000000000"
                 "0300000000000000000000009613cb9f",
                 may_have);
}

TEST(Messages, Push) {
  expect_message(
      Push{.request_id = 4,
           .step = 7,
           .micro_batch = 5,
           .range_begin = 1024,
           .generation = 3,
           .form = kFlagInt8},
      "44544631061400010400000000000000"
      "00000000000000000700000000000000"
      "05000000000000000004000000000000"
      "0300000000000000000000005ca2b1e6",
      {.flags = kTensorForms, .step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
}

TEST(Messages, Parameters) {
  const FrameHeader may_have{
      .flags = kFlagFinished | kFlagDropped | kFlagGroupSum | kFlagBf16 | kFlagInt8 | kFlagInt4,
      .step = 1,
      .sequence = 1,
      .range_begin = 1,
      .generation = 1};
  expect_message(Parameters{.request_id = 4,
                            .step = 7,
                            .counts_from = 9,
                            .generation = 3,
                            .finished = true,
                            .dropped = true,
                            .form = kFlagBf16},
                 "44544631060a43000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000000000000000000"
                 "0300000000000000000000005b9b305b",
                 may_have);
  expect_message(
      Parameters{.request_id = 4, .step = 7, .share = {.first = 1, .stride = 3}, .generation = 3},
      "44544631060a00000400000000000000"
      "00000000000000000700000000000000"
      "00000000000000000100000003000000"
      "03000000000000000000000040960170",
      may_have);
  expect_message(Parameters{.request_id = 4, .step = 7, .generation = 3, .group_sum = true},
                 "44544631060a00040400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000000000000000000"
                 "030000000000000000000000b1debd1c",
                 may_have);
}

TEST(Messages, Meet) {
  expect_message(
      Meet{.request_id = 4, .rendezvous = 0x0102030405060708, .token = 0x1112131415161718},
      "44544631062c00000400000000000000"
      "00000000000000000807060504030201"
      "18171615141312110000000000000000"
      "000000000000000000000000e103fe47",
      {.step = 1, .sequence = 1});
}

TEST(Messages, Work) {
  expect_message(Work{.request_id = 4, .step = 7, .micro_batch = 5, .generation = 3},
                 "44544631061500000400000000000000"
                 "00000000000000000700000000000000"
                 "05000000000000000000000000000000"
                 "030000000000000000000000efac0253",
                 {.step = 1, .sequence = 1, .generation = 1});
}

TEST(Messages, Restore) {
  expect_message(Restore{.request_id = 4, .step = 7, .range_begin = 1024, .generation = 3},
                 "44544631060700000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000004000000000000"
                 "03000000000000000000000087f5a7b4",
                 {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
  expect_message(
      Restore{.request_id = 4, .step = 7, .range_begin = 1024, .generation = 3, .finished = true},
      "44544631060701000400000000000000"
      "00000000000000000700000000000000"
      "00000000000000000004000000000000"
      "030000000000000000000000315c02b5",
      {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
}

TEST(Messages, Shutdown) {
  expect_message(Shutdown{.request_id = 4, .step = 7, .generation = 3},
                 "44544631060d00000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000000000000000000"
                 "0300000000000000000000008400a4d2",
                 {.step = 1, .generation = 1});
}

TEST(Messages, Heartbeat) {
  expect_message(Heartbeat{.request_id = 4, .generation = 3},
                 "44544631060b00000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0300000000000000000000008d891d42",
                 {.generation = 1});
}

// 0.5 is 3f e0 and six zeros.
TEST(Messages, Best) {
  expect_message(Best{.request_id = 4, .step = 7, .loss = 0.5},
                 "44544631062500000400000000000000"
                 "00000000000000000700000000000000"
                 "000000000000e03f0000000000000000"
                 "000000000000000000000000e2730368",
                 {.step = 1, .sequence = 1});
}

TEST(Messages, ABestLossIsANumber) {
  Best best;
  EXPECT_EQ(best.from_header(Best{.loss = std::numeric_limits<double>::infinity()}.to_header()),
            WireError::kBadBody);
  EXPECT_EQ(best, Best{});
}

TEST(Messages, Fenced) {
  expect_message(Fenced{4},
                 "44544631061100000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0000000000000000000000005f9840f7",
                 {});
}

template <typename Message>
void expect_kind(FrameKind kind) {
  const FrameHeader header = Message{4}.to_header();
  EXPECT_EQ(header, (FrameHeader{.kind = kind, .request_id = 4}));
  expect_message(Message{4}, bytes_of(Message{4}), {});
}

TEST(Messages, OfTheOtherKindsTheHeaderSaysNothing) {
  expect_kind<WelcomeFrame>(FrameKind::kWelcome);
  expect_kind<RefusedFrame>(FrameKind::kRefused);
  expect_kind<Publish>(FrameKind::kPublish);
  expect_kind<Config>(FrameKind::kConfig);
  expect_kind<Ack>(FrameKind::kAck);
  expect_kind<GetStatus>(FrameKind::kStatus);
  expect_kind<StatusReply>(FrameKind::kStatusReply);
  expect_kind<Written>(FrameKind::kWritten);
  expect_kind<NotWritten>(FrameKind::kNotWritten);
  expect_kind<ShareFrame>(FrameKind::kShare);
  expect_kind<SharedFrame>(FrameKind::kShared);
  expect_kind<ViewFrame>(FrameKind::kView);
  expect_kind<ReportFrame>(FrameKind::kReport);
  expect_kind<OrderFrame>(FrameKind::kOrder);
  expect_kind<ResultFrame>(FrameKind::kResult);
  expect_kind<RunTaskFrame>(FrameKind::kRunTask);
  expect_kind<TaskEndedFrame>(FrameKind::kTaskEnded);
}

TEST(Messages, AreBodilessWhereNothingFollows) {
  EXPECT_TRUE(is_bodiless<Heartbeat>({.kind = FrameKind::kHeartbeat}));
  EXPECT_FALSE(is_bodiless<Heartbeat>({.kind = FrameKind::kHeartbeat, .body_size = 1}));
  EXPECT_FALSE(is_bodiless<Heartbeat>({.kind = FrameKind::kAck}));
}

}  // namespace
}  // namespace disttf::net
