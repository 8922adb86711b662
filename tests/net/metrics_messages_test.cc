#include "net/wire/metrics_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace disttf::net {
namespace {

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

}  // namespace
}  // namespace disttf::net
