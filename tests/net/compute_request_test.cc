#include "net/wire/compute_request.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/frame.h"

namespace disttf::net {
namespace {

constexpr TaskId kPs0{.job = Job::kPs, .index = 0};
constexpr TaskId kPs1{.job = Job::kPs, .index = 1};
constexpr TaskId kWorker1{.job = Job::kWorker, .index = 1};

// The request of `disttf plus`.
ComputeRequest sum() {
  return {{.operation = Operation::kAdd, .task = kWorker1},
          {.operation = Operation::kNumber, .task = kPs0, .value = 10},
          {.operation = Operation::kNumber, .task = kPs1, .value = 32}};
}

std::string hex_of(std::span<const std::byte> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes) {
    out += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    out += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return out;
}

// Decodes the bytes of sum() with one byte changed.
std::error_code changed(std::size_t at, std::uint8_t value) {
  std::vector<std::byte> bytes = encode(sum());
  bytes[at] = std::byte{value};
  ComputeRequest out;
  return decode(bytes, out);
}

TEST(ComputeRequest, HasTheBytesOfTheDocument) {
  const std::vector<std::byte> body = encode(sum());
  std::array<std::byte, kHeaderBytes> header{};
  encode_header({.kind = FrameKind::kCompute, .request_id = 1, .body_size = body.size()}, header);
  EXPECT_EQ(hex_of(header),
            "44544631072100000100000000000000"
            "30000000000000000000000000000000"
            "00000000000000000000000000000000"
            "000000000000000000000000d15ee3a3");
  EXPECT_EQ(hex_of(body),
            "02020000010000000000000000000000"
            "01010000000000000a00000000000000"
            "01010000010000002000000000000000");
}

TEST(ComputeRequest, IsReadBack) {
  const ComputeRequest asked = {{.operation = Operation::kAsk, .task = kPs0},
                                {.operation = Operation::kDescribe, .task = kPs1}};
  const ComputeRequest negative = {{.operation = Operation::kNumber,
                                    .task = kPs0,
                                    .value = std::numeric_limits<std::int64_t>::min()}};
  for (const ComputeRequest& request : {sum(), asked, negative}) {
    ComputeRequest out;
    ASSERT_FALSE(decode(encode(request), out));
    EXPECT_EQ(out, request);
  }
}

TEST(ComputeRequest, HasAllItsOperandsAndNoMore) {
  std::vector<std::byte> bytes = encode(sum());
  ComputeRequest out;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::span(bytes).first(size), out), WireError::kBadBody) << size;
  }
  const std::vector<std::byte> more = encode(ComputeRequest{{.task = kPs0}});
  bytes.insert(bytes.end(), more.begin(), more.end());
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody);
  EXPECT_EQ(out, ComputeRequest{}) << "a rejected body changed the output";
}

TEST(ComputeRequest, HasAtMost64Nodes) {
  ComputeRequest request(kMaxComputeNodes - 1, {.operation = Operation::kAsk, .task = kPs0});
  request.push_back({.operation = Operation::kNumber, .task = kPs0});
  ComputeRequest out;
  EXPECT_FALSE(decode(encode(request), out));
  request.insert(request.begin(), request.front());
  EXPECT_EQ(decode(encode(request), out), WireError::kBadBody);
}

TEST(ComputeRequest, RejectsValuesThatMeanNothing) {
  EXPECT_EQ(changed(0, 0), WireError::kBadBody) << "operation";
  EXPECT_EQ(changed(0, 5), WireError::kBadBody) << "operation";
  EXPECT_EQ(changed(1, 0), WireError::kBadBody) << "job";
  EXPECT_EQ(changed(1, 5), WireError::kBadBody) << "job";
  EXPECT_EQ(changed(2, 1), WireError::kBadBody) << "reserved";
  EXPECT_EQ(changed(8, 1), WireError::kBadBody) << "an unused value";
}

TEST(ComputeRequest, KnowsWhereAnExpressionEnds) {
  EXPECT_EQ(expression_size(sum()), 3U);
  EXPECT_EQ(expression_size(std::span<const ComputeNode>(sum()).subspan(1)), 1U);
}

TEST(ComputeResult, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex_of(encode(ComputeResult{.value = 42, .text = "ok"})), "2a000000000000006f6b");
}

TEST(ComputeResult, IsReadBackSafeToShow) {
  ComputeResult out;
  ASSERT_FALSE(decode(encode(ComputeResult{.value = -1, .text = "two\nlines"}), out));
  EXPECT_EQ(out, (ComputeResult{.value = -1, .text = "two lines"}));
}

TEST(ComputeResult, RejectsWhatIsTooShortOrTooLong) {
  ComputeResult out;
  EXPECT_EQ(decode(std::vector<std::byte>(7), out), WireError::kBadBody);
  EXPECT_EQ(decode(std::vector<std::byte>(9 + kMaxResultTextBytes), out), WireError::kBadBody);
  EXPECT_EQ(out, ComputeResult{});
  const ComputeResult longest{.text = std::string(kMaxResultTextBytes + 1, 'x')};
  EXPECT_EQ(encode(longest).size(), 8 + kMaxResultTextBytes);
}

}  // namespace
}  // namespace disttf::net
