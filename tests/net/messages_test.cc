#include "net/wire/messages.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/net/message_test.h"

namespace disttf::net {
namespace {

// A refused header must not change the output.
TEST(Messages, ARefusedHeaderChangesNothing) {
  Work work{.request_id = 1, .step = 2, .micro_batch = 3, .generation = 4};
  const Work before = work;
  EXPECT_TRUE(work.from_header({.kind = FrameKind::kWork, .step = 9, .range_begin = 1}));
  EXPECT_EQ(work, before);
}

TEST(Messages, GetConfig) {
  expect_message(GetConfig{.request_id = 4},
                 "44544631070500000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0000000000000000000000000b7c732f",
                 {});
}

TEST(Messages, Goodbye) {
  expect_message(Goodbye{.request_id = 4, .generation = 3},
                 "44544631070c00000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0300000000000000000000002a8382b1",
                 {.generation = 1});
}

TEST(Messages, ARequestIsOneOfSeveral) {
  const TrainerRequest request = Goodbye{.request_id = 4, .generation = 3};
  EXPECT_EQ(header_of(request), (Goodbye{.request_id = 4, .generation = 3}.to_header()));
}

TEST(Messages, Pull) {
  expect_message(Pull{.request_id = 4, .configuration = 0x0123456789abcdef},
                 "44544631070800000400000000000000"
                 "00000000000000000000000000000000"
                 "efcdab89674523010000000000000000"
                 "0000000000000000000000009be65e30",
                 {.flags = kFlagPrevious | kFlagFinished, .sequence = 1});
  expect_message(Pull{.request_id = 4, .previous = true},
                 "44544631070808000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0000000000000000000000002ad03f43",
                 {.flags = kFlagPrevious | kFlagFinished, .sequence = 1});
  expect_message(Pull{.request_id = 4, .concludes = true},
                 "44544631070801000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0000000000000000000000002c34b74f",
                 {.flags = kFlagPrevious | kFlagFinished, .sequence = 1});
}

TEST(Messages, AwaitStep) {
  expect_message(AwaitStep{.request_id = 4,
                           .step = 7,
                           .push = 9,
                           .keep_snapshot = true,
                           .generation = 3,
                           .form = kFlagBf16},
                 "44544631070854000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000000000000000000"
                 "030000000000000000000000ce29801c",
                 {.flags = kFlagNext | kFlagSnapshot | kTensorForms,
                  .step = 1,
                  .sequence = 1,
                  .generation = 1});
  AwaitStep out;
  EXPECT_EQ(out.from_header({.kind = FrameKind::kPull}), WireError::kBadFlags) << "a plain PULL";
}

TEST(Messages, PushPull) {
  const FrameHeader may_have{.flags = kFlagSnapshot | kFlagGroupSum | kTensorForms,
                             .step = 1,
                             .sequence = 1,
                             .range_begin = 1,
                             .generation = 1};
  expect_message(PushPull{.request_id = 4,
                          .step = 7,
                          .push = 9,
                          .keep_snapshot = true,
                          .range_begin = 1024,
                          .generation = 3,
                          .form = kFlagSparse},
                 "44544631070984000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000004000000000000"
                 "030000000000000000000000dcba0f76",
                 may_have);
  expect_message(PushPull{.request_id = 4,
                          .step = 7,
                          .push = 9,
                          .group_sum = true,
                          .range_begin = 1024,
                          .generation = 3},
                 "44544631070900040400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000004000000000000"
                 "03000000000000000000000041005e82",
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
      "44544631071400010400000000000000"
      "00000000000000000700000000000000"
      "05000000000000000004000000000000"
      "0300000000000000000000008bb124fb",
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
                 "44544631070a43000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000000000000000000"
                 "0300000000000000000000008c88a546",
                 may_have);
  expect_message(
      Parameters{.request_id = 4, .step = 7, .share = {.first = 1, .stride = 3}, .generation = 3},
      "44544631070a00000400000000000000"
      "00000000000000000700000000000000"
      "00000000000000000100000003000000"
      "0300000000000000000000009785946d",
      may_have);
  expect_message(Parameters{.request_id = 4, .step = 7, .generation = 3, .group_sum = true},
                 "44544631070a00040400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000000000000000000"
                 "03000000000000000000000066cd2801",
                 may_have);
}

TEST(Messages, PeerDiscovery) {
  expect_message(
      PeerDiscovery{
          .request_id = 4, .listener_name = 0x0102030405060708, .token = 0x1112131415161718},
      "44544631072c00000400000000000000"
      "00000000000000000807060504030201"
      "18171615141312110000000000000000"
      "00000000000000000000000036106b5a",
      {.step = 1, .sequence = 1});
}

TEST(Messages, Work) {
  expect_message(Work{.request_id = 4, .step = 7, .micro_batch = 5, .generation = 3},
                 "44544631071500000400000000000000"
                 "00000000000000000700000000000000"
                 "05000000000000000000000000000000"
                 "03000000000000000000000038bf974e",
                 {.step = 1, .sequence = 1, .generation = 1});
}

TEST(Messages, Restore) {
  expect_message(Restore{.request_id = 4, .step = 7, .range_begin = 1024, .generation = 3},
                 "44544631070700000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000004000000000000"
                 "03000000000000000000000050e632a9",
                 {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
  expect_message(
      Restore{.request_id = 4, .step = 7, .range_begin = 1024, .generation = 3, .finished = true},
      "44544631070701000400000000000000"
      "00000000000000000700000000000000"
      "00000000000000000004000000000000"
      "030000000000000000000000e64f97a8",
      {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
}

TEST(Messages, Shutdown) {
  expect_message(Shutdown{.request_id = 4, .step = 7, .generation = 3},
                 "44544631070d00000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000000000000000000"
                 "030000000000000000000000531331cf",
                 {.step = 1, .generation = 1});
}

TEST(Messages, Heartbeat) {
  expect_message(Heartbeat{.request_id = 4, .generation = 3},
                 "44544631070b00000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0300000000000000000000005a9a885f",
                 {.generation = 1});
}

// 0.5 is 3f e0 and six zeros.
TEST(Messages, Best) {
  expect_message(Best{.request_id = 4, .step = 7, .loss = 0.5},
                 "44544631072500000400000000000000"
                 "00000000000000000700000000000000"
                 "000000000000e03f0000000000000000"
                 "00000000000000000000000035609675",
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
                 "44544631071100000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "000000000000000000000000888bd5ea",
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
  expect_kind<ComputeFrame>(FrameKind::kCompute);
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
