#include "net/wire/messages.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>

#include "net/wire/metrics_messages.h"
#include "net/wire/replication.h"
#include "tests/net/wire_bytes.h"

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
                 "4454463107050000040000000000000000000000000000000000000000000000"
                 "000000000000000000000000000000000000000000000000000000000b7c732f",
                 {});
}

TEST(Messages, Goodbye) {
  expect_message(Goodbye{.request_id = 4, .generation = 3},
                 "44544631070c0000040000000000000000000000000000000000000000000000"
                 "000000000000000000000000000000000300000000000000000000002a8382b1",
                 {.generation = 1});
}

TEST(Messages, ARequestIsOneOfSeveral) {
  const TrainerRequest request = Goodbye{.request_id = 4, .generation = 3};
  EXPECT_EQ(header_of(request), (Goodbye{.request_id = 4, .generation = 3}.to_header()));
}

TEST(Messages, Pull) {
  expect_message(Pull{.request_id = 4, .configuration = 0x0123456789abcdef},
                 "4454463107080000040000000000000000000000000000000000000000000000"
                 "efcdab896745230100000000000000000000000000000000000000009be65e30",
                 {.flags = kFlagPrevious | kFlagFinished, .sequence = 1});
  expect_message(Pull{.request_id = 4, .previous = true},
                 "4454463107080800040000000000000000000000000000000000000000000000"
                 "000000000000000000000000000000000000000000000000000000002ad03f43",
                 {.flags = kFlagPrevious | kFlagFinished, .sequence = 1});
  expect_message(Pull{.request_id = 4, .concludes = true},
                 "4454463107080100040000000000000000000000000000000000000000000000"
                 "000000000000000000000000000000000000000000000000000000002c34b74f",
                 {.flags = kFlagPrevious | kFlagFinished, .sequence = 1});
}

TEST(Messages, AwaitStep) {
  expect_message(AwaitStep{.request_id = 4,
                           .step = 7,
                           .push = 9,
                           .keep_snapshot = true,
                           .generation = 3,
                           .form = kFlagBf16},
                 "4454463107085400040000000000000000000000000000000700000000000000"
                 "09000000000000000000000000000000030000000000000000000000ce29801c",
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
                 "4454463107098400040000000000000000000000000000000700000000000000"
                 "09000000000000000004000000000000030000000000000000000000dcba0f76",
                 may_have);
  expect_message(PushPull{.request_id = 4,
                          .step = 7,
                          .push = 9,
                          .group_sum = true,
                          .range_begin = 1024,
                          .generation = 3},
                 "4454463107090004040000000000000000000000000000000700000000000000"
                 "0900000000000000000400000000000003000000000000000000000041005e82",
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
      "4454463107140001040000000000000000000000000000000700000000000000"
      "050000000000000000040000000000000300000000000000000000008bb124fb",
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
                 "44544631070a4300040000000000000000000000000000000700000000000000"
                 "090000000000000000000000000000000300000000000000000000008c88a546",
                 may_have);
  expect_message(
      Parameters{.request_id = 4, .step = 7, .share = {.first = 1, .stride = 3}, .generation = 3},
      "44544631070a0000040000000000000000000000000000000700000000000000"
      "000000000000000001000000030000000300000000000000000000009785946d",
      may_have);
  expect_message(Parameters{.request_id = 4, .step = 7, .generation = 3, .group_sum = true},
                 "44544631070a0004040000000000000000000000000000000700000000000000"
                 "0000000000000000000000000000000003000000000000000000000066cd2801",
                 may_have);
}

TEST(Messages, PeerDiscovery) {
  expect_message(
      PeerDiscovery{
          .request_id = 4, .listener_name = 0x0102030405060708, .token = 0x1112131415161718},
      "44544631072c0000040000000000000000000000000000000807060504030201"
      "1817161514131211000000000000000000000000000000000000000036106b5a",
      {.step = 1, .sequence = 1});
}

TEST(Messages, Work) {
  expect_message(Work{.request_id = 4, .step = 7, .micro_batch = 5, .generation = 3},
                 "4454463107150000040000000000000000000000000000000700000000000000"
                 "0500000000000000000000000000000003000000000000000000000038bf974e",
                 {.step = 1, .sequence = 1, .generation = 1});
}

TEST(Messages, Restore) {
  expect_message(Restore{.request_id = 4, .step = 7, .range_begin = 1024, .generation = 3},
                 "4454463107070000040000000000000000000000000000000700000000000000"
                 "0000000000000000000400000000000003000000000000000000000050e632a9",
                 {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
  expect_message(
      Restore{.request_id = 4, .step = 7, .range_begin = 1024, .generation = 3, .finished = true},
      "4454463107070100040000000000000000000000000000000700000000000000"
      "00000000000000000004000000000000030000000000000000000000e64f97a8",
      {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
}

TEST(Messages, Shutdown) {
  expect_message(Shutdown{.request_id = 4, .step = 7, .generation = 3},
                 "44544631070d0000040000000000000000000000000000000700000000000000"
                 "00000000000000000000000000000000030000000000000000000000531331cf",
                 {.step = 1, .generation = 1});
}

TEST(Messages, Heartbeat) {
  expect_message(Heartbeat{.request_id = 4, .generation = 3},
                 "44544631070b0000040000000000000000000000000000000000000000000000"
                 "000000000000000000000000000000000300000000000000000000005a9a885f",
                 {.generation = 1});
}

// 0.5 is 3f e0 and six zeros.
TEST(Messages, Best) {
  expect_message(Best{.request_id = 4, .step = 7, .loss = 0.5},
                 "4454463107250000040000000000000000000000000000000700000000000000"
                 "000000000000e03f000000000000000000000000000000000000000035609675",
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
                 "4454463107110000040000000000000000000000000000000000000000000000"
                 "00000000000000000000000000000000000000000000000000000000888bd5ea",
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

TEST(LogMessages, PublishToBackup) {
  const PublishToBackup message{.view = {.chief = 0x123456789abcdef, .count = 6}, .generation = 3};
  expect_message(message,
                 "445446310704000000000000000000000000000000000000efcdab8967452301"
                 "0600000000000000000000000000000003000000000000000000000026f5ad1f",
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
                 "44544631071e0000040000000000000000000000000000000700000000000000"
                 "0000000000000000000400000000000003000000000000000000000042f0f50d",
                 {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
  expect_message(
      Fill{.entry = 4, .step = 7, .range_begin = 1024, .generation = 3, .finished = true},
      "44544631071e0100040000000000000000000000000000000700000000000000"
      "00000000000000000004000000000000030000000000000000000000f459500c",
      {.flags = kFlagFinished, .step = 1, .range_begin = 1, .generation = 1});
}

TEST(LogMessages, Update) {
  expect_message(Update{.entry = 4, .step = 7, .push = 9, .range_begin = 1024, .generation = 3},
                 "44544631071f0000040000000000000000000000000000000700000000000000"
                 "09000000000000000004000000000000030000000000000000000000a756ec23",
                 {.step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
}

TEST(LogMessages, Complete) {
  expect_message(Complete{.entry = 4, .generation = 3},
                 "4454463107200000040000000000000000000000000000000000000000000000"
                 "000000000000000000000000000000000300000000000000000000002da6b069",
                 {.generation = 1});
}

TEST(LogMessages, Conclude) {
  expect_message(Conclude{.entry = 4, .step = 7, .generation = 3},
                 "44544631072b0000040000000000000000000000000000000700000000000000"
                 "00000000000000000000000000000000030000000000000000000000b5ce6898",
                 {.step = 1, .generation = 1});
}

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

TEST(TraceSteps, IsAHeaderAlone) {
  const TraceSteps sent{.request_id = 3, .from = 1200, .count = 50};
  const FrameHeader header = sent.to_header();
  EXPECT_EQ(header, (FrameHeader{
                        .kind = FrameKind::kTrace, .request_id = 3, .step = 1200, .sequence = 50}));
  TraceSteps read;
  EXPECT_FALSE(read.from_header(header));
  EXPECT_EQ(read, sent);
  FrameHeader wrong = header;
  wrong.generation = 1;
  EXPECT_EQ(read.from_header(wrong), WireError::kBadReserved);
}

TEST(MetricsReply, LiesInTheseBytes) {
  EXPECT_EQ(encode_metrics(std::vector<std::string>{"{}", "", "abc"}),
            bytes_of({2, 0, 0, 0, '{', '}', 0, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 'c'}));
}

TEST(MetricsReply, IsReadBack) {
  const std::vector<std::string> texts = {"one", "", std::string(kMaxMetricsBytes, 'x')};
  std::vector<std::string> read;
  EXPECT_FALSE(decode_metrics(encode_metrics(texts), read));
  EXPECT_EQ(read, texts);
  EXPECT_FALSE(decode_metrics({}, read));
  EXPECT_THAT(read, IsEmpty());
}

TEST(MetricsReply, HasAsManyTextsAsFit) {
  const std::vector<std::string> texts(100, std::string(kMaxMetricsBytes, 'x'));
  const std::vector<std::byte> body = encode_metrics(texts);
  EXPECT_LE(body.size(), kMaxMetricsReplyBytes);
  std::vector<std::string> read;
  EXPECT_FALSE(decode_metrics(body, read));
  EXPECT_EQ(read.size(), kMaxMetricsReplyBytes / (kMaxMetricsBytes + 4));
}

TEST(MetricsReply, ALengthThatDoesNotFitIsRefused) {
  std::vector<std::string> read = {"kept"};
  EXPECT_EQ(decode_metrics(bytes_of({3, 0, 0, 0, 'a', 'b'}), read), WireError::kBadBody);
  EXPECT_EQ(decode_metrics(bytes_of({0, 0, 0}), read), WireError::kBadBody);
  EXPECT_EQ(decode_metrics(bytes_of({255, 255, 255, 255, 'a'}), read), WireError::kBadBody);
  EXPECT_EQ(decode_metrics(bytes_of({1, 0, 0, 0, 'a', 9}), read), WireError::kBadBody);
  EXPECT_THAT(read, ElementsAre("kept"));
}

constexpr View kView{
    .number = {.chief = 0x1122334455667788, .count = 0x01020304}, .primary = 1, .paired = true};
constexpr Report kReport{.view = {.chief = 9, .count = 3},
                         .replica_role = ReplicaRole::kBackup,
                         .holds = true,
                         .wants_alone = false,
                         .wants_pair = true,
                         .finished = true,
                         .paired = true,
                         .trainers = in_set(1) | in_set(71)};
const UpdateHead kUpdate{.incarnation = 0x1122334455667788, .trainers = {0x0105}};
constexpr FillHead kFill{
    .lineage = 0x1122334455667788, .counters = {1, 2, 3, 4, 5, 6}, .trainers = 7, .tensors = 8};
constexpr FillTrainer kTrainer{.incarnation = 1, .last_sequence = 2, .clock = 3, .used = 4};

TEST(Replication, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex(encode(kView)), "88776655443322110403020101010000");
  EXPECT_EQ(hex(encode(kReport)), "090000000000000003000000021d00008200000000000000");
  EXPECT_EQ(hex(encode(kUpdate)), "88776655443322110501000000000000");
  EXPECT_EQ(hex(encode(UpdateHead{.trainers = {0, 2}})),
            "000000000000000000000000000000000200000000000000");
  EXPECT_EQ(hex(encode(kFill)),
            "8877665544332211"
            "010000000000000002000000000000000300000000000000"
            "040000000000000005000000000000000600000000000000"
            "07000000080000000000000000000000");
  EXPECT_EQ(hex(encode(kTrainer)),
            "0100000000000000020000000000000003000000000000000400000000000000");
}

// The views of the newer chief take precedence, however many the older one creates.
TEST(ViewNumber, IsOrderedByItsChiefFirst) {
  EXPECT_GT((ViewNumber{.chief = 9, .count = 3}), (ViewNumber{.chief = 8, .count = 4}));
  EXPECT_GT((ViewNumber{.chief = 8, .count = 4}), (ViewNumber{.chief = 8, .count = 3}));
}

TEST(Replication, IsReadBackAndNothingElseIs) {
  expect_read_back(kView);
  expect_read_back(kReport);
  expect_read_back(kUpdate);
  expect_read_back(kFill);
  expect_read_back(kTrainer);
}

TEST(Replication, RejectsValuesThatMeanNothing) {
  EXPECT_EQ(decode_with(kView, 12, 2), WireError::kBadBody);
  EXPECT_EQ(decode_with(kView, 13, 2), WireError::kBadBody);
  EXPECT_EQ(decode_with(kView, 14, 1), WireError::kBadBody);
  EXPECT_EQ(decode_with(kReport, 12, 3), WireError::kBadBody);
  EXPECT_EQ(decode_with(kReport, 13, 32), WireError::kBadBody);
  EXPECT_EQ(decode_with(kReport, 15, 1), WireError::kBadBody);
  UpdateHead none;
  EXPECT_EQ(decode(encode(UpdateHead{.trainers = {0, 0}}), none), WireError::kBadBody)
      << "the sum of no gradients";
  EXPECT_EQ(decode(encode(UpdateHead{}), none), WireError::kBadBody);
  EXPECT_EQ(decode_with(kFill, 64, 1), WireError::kBadBody);
}

}  // namespace
}  // namespace disttf::net
