#include "net/wire/messages.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/net/wire_bytes.h"

namespace disttf::net {
namespace {

template <typename Message>
std::string bytes_of(const Message& message) {
  std::array<std::byte, kHeaderBytes> bytes{};
  encode_header(message.to_header(), bytes);
  return hex(bytes);
}

// Fields and flags of a header, each of them alone.
constexpr std::array<FrameHeader, 4> kFields = {
    FrameHeader{.step = 1}, {.sequence = 1}, {.range_begin = 1}, {.generation = 1}};
constexpr unsigned kFlagBits = 10;

// Has these bytes, is read back from them, and is not read from a header with any field or flag
// that is not in `may_have`; where that has one, its kind does.
template <typename Message>
void expect_message(const Message& message, const std::string& golden,
                    const FrameHeader& may_have) {
  EXPECT_EQ(bytes_of(message), golden);
  const FrameHeader header = message.to_header();
  Message out;
  ASSERT_FALSE(out.from_header(header));
  EXPECT_EQ(out, message);
  out = {};
  FrameHeader other = header;
  other.kind = FrameKind::kAck;
  EXPECT_EQ(out.from_header(other), WireError::kUnexpected);
  for (unsigned bit = 0; bit < kFlagBits; ++bit) {
    other = header;
    other.flags |= static_cast<std::uint16_t>(1U << bit);
    const bool is_known = (may_have.flags >> bit & 1U) != 0;
    EXPECT_EQ(out.from_header(other), is_known ? std::error_code{} : WireError::kBadFlags) << bit;
  }
  for (const FrameHeader& field : kFields) {
    other = header;
    other.step += field.step;
    other.sequence += field.sequence;
    other.range_begin += field.range_begin;
    other.generation += field.generation;
    const bool is_known = field.step * may_have.step + field.sequence * may_have.sequence +
                              field.range_begin * may_have.range_begin +
                              field.generation * may_have.generation !=
                          0;
    EXPECT_EQ(out.from_header(other), is_known ? std::error_code{} : WireError::kBadReserved);
  }
}

// What a refused header leaves alone.
TEST(Messages, ARefusedHeaderChangesNothing) {
  Work work{.request_id = 1, .step = 2, .micro_batch = 3, .generation = 4};
  const Work before = work;
  EXPECT_TRUE(work.from_header({.kind = FrameKind::kWork, .step = 9, .range_begin = 1}));
  EXPECT_EQ(work, before);
}

TEST(Messages, GetConfig) {
  expect_message(GetConfig{.request_id = 4},
                 "44544631040500000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "0000000000000000000000007248cc09",
                 {});
}

TEST(Messages, Goodbye) {
  expect_message(Goodbye{.request_id = 4, .generation = 3},
                 "44544631040c00000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "03000000000000000000000053b73d97",
                 {.generation = 1});
}

TEST(Messages, ARequestIsOneOfSeveral) {
  const TrainerRequest request = Goodbye{.request_id = 4, .generation = 3};
  EXPECT_EQ(header_of(request), (Goodbye{.request_id = 4, .generation = 3}.to_header()));
}

TEST(Messages, Pull) {
  expect_message(Pull{.request_id = 4, .previous = true},
                 "44544631040808000400000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000000000000"
                 "00000000000000000000000053e48065",
                 {.flags = kFlagPrevious});
}

TEST(Messages, AwaitStep) {
  expect_message(
      AwaitStep{
          .request_id = 4, .step = 7, .push = 9, .cut = true, .generation = 3, .form = kFlagBf16},
      "44544631040854000400000000000000"
      "00000000000000000700000000000000"
      "09000000000000000000000000000000"
      "030000000000000000000000b71d3f3a",
      {.flags = kFlagNext | kFlagCut | kTensorForms, .step = 1, .sequence = 1, .generation = 1});
  AwaitStep out;
  EXPECT_EQ(out.from_header({.kind = FrameKind::kPull}), WireError::kBadFlags) << "a plain PULL";
}

TEST(Messages, PushPull) {
  expect_message(PushPull{.request_id = 4,
                          .step = 7,
                          .push = 9,
                          .cut = true,
                          .range_begin = 1024,
                          .generation = 3,
                          .form = kFlagSparse},
                 "44544631040984000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000004000000000000"
                 "030000000000000000000000a58eb050",
                 {.flags = kFlagCut | kTensorForms,
                  .step = 1,
                  .sequence = 1,
                  .range_begin = 1,
                  .generation = 1});
}

TEST(Messages, Push) {
  expect_message(
      Push{.request_id = 4,
           .step = 7,
           .micro_batch = 5,
           .range_begin = 1024,
           .generation = 3,
           .form = kFlagInt8},
      "44544631041400010400000000000000"
      "00000000000000000700000000000000"
      "05000000000000000004000000000000"
      "030000000000000000000000f2859bdd",
      {.flags = kTensorForms, .step = 1, .sequence = 1, .range_begin = 1, .generation = 1});
}

TEST(Messages, Parameters) {
  const FrameHeader may_have{
      .flags = kFlagFinished | kFlagDropped | kFlagBf16 | kFlagInt8 | kFlagInt4,
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
                 "44544631040a43000400000000000000"
                 "00000000000000000700000000000000"
                 "09000000000000000000000000000000"
                 "030000000000000000000000f5bc1a60",
                 may_have);
  expect_message(
      Parameters{.request_id = 4, .step = 7, .share = {.first = 1, .stride = 3}, .generation = 3},
      "44544631040a00000400000000000000"
      "00000000000000000700000000000000"
      "00000000000000000100000003000000"
      "030000000000000000000000eeb12b4b",
      may_have);
}

TEST(Messages, Work) {
  expect_message(Work{.request_id = 4, .step = 7, .micro_batch = 5, .generation = 3},
                 "44544631041500000400000000000000"
                 "00000000000000000700000000000000"
                 "05000000000000000000000000000000"
                 "030000000000000000000000418b2868",
                 {.step = 1, .sequence = 1, .generation = 1});
}

TEST(Messages, Fenced) {
  expect_message(Fenced{.request_id = 4, .step = 7, .generation = 3},
                 "44544631041100000400000000000000"
                 "00000000000000000700000000000000"
                 "00000000000000000000000000000000"
                 "030000000000000000000000684e44e7",
                 {.step = 1, .generation = 1});
}

}  // namespace
}  // namespace disttf::net
