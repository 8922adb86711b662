#include "net/wire/order.h"

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
Order sum() {
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
  Order out;
  return decode(bytes, out);
}

TEST(Order, HasTheBytesOfTheDocument) {
  const std::vector<std::byte> body = encode(sum());
  std::array<std::byte, kHeaderBytes> header{};
  encode_header({.kind = FrameKind::kOrder, .request_id = 1, .body_size = body.size()}, header);
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

TEST(Order, IsReadBack) {
  const Order asked = {{.operation = Operation::kAsk, .task = kPs0},
                       {.operation = Operation::kDescribe, .task = kPs1}};
  const Order negative = {{.operation = Operation::kNumber,
                           .task = kPs0,
                           .value = std::numeric_limits<std::int64_t>::min()}};
  for (const Order& order : {sum(), asked, negative}) {
    Order out;
    ASSERT_FALSE(decode(encode(order), out));
    EXPECT_EQ(out, order);
  }
}

TEST(Order, HasAllItsOperandsAndNoMore) {
  std::vector<std::byte> bytes = encode(sum());
  Order out;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::span(bytes).first(size), out), WireError::kBadBody) << size;
  }
  const std::vector<std::byte> more = encode(Order{{.task = kPs0}});
  bytes.insert(bytes.end(), more.begin(), more.end());
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody);
  EXPECT_EQ(out, Order{}) << "a rejected body changed the output";
}

TEST(Order, HasAtMost64Nodes) {
  Order order(kMaxOrderNodes - 1, {.operation = Operation::kAsk, .task = kPs0});
  order.push_back({.operation = Operation::kNumber, .task = kPs0});
  Order out;
  EXPECT_FALSE(decode(encode(order), out));
  order.insert(order.begin(), order.front());
  EXPECT_EQ(decode(encode(order), out), WireError::kBadBody);
}

TEST(Order, RejectsValuesThatMeanNothing) {
  EXPECT_EQ(changed(0, 0), WireError::kBadBody) << "operation";
  EXPECT_EQ(changed(0, 5), WireError::kBadBody) << "operation";
  EXPECT_EQ(changed(1, 0), WireError::kBadBody) << "job";
  EXPECT_EQ(changed(1, 5), WireError::kBadBody) << "job";
  EXPECT_EQ(changed(2, 1), WireError::kBadBody) << "reserved";
  EXPECT_EQ(changed(8, 1), WireError::kBadBody) << "an unused value";
}

TEST(Order, KnowsWhereAnExpressionEnds) {
  EXPECT_EQ(expression_size(sum()), 3U);
  EXPECT_EQ(expression_size(std::span<const OrderNode>(sum()).subspan(1)), 1U);
}

TEST(OrderResult, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex_of(encode(OrderResult{.value = 42, .text = "ok"})), "2a000000000000006f6b");
}

TEST(OrderResult, IsReadBackSafeToShow) {
  OrderResult out;
  ASSERT_FALSE(decode(encode(OrderResult{.value = -1, .text = "two\nlines"}), out));
  EXPECT_EQ(out, (OrderResult{.value = -1, .text = "two lines"}));
}

TEST(OrderResult, RejectsWhatIsTooShortOrTooLong) {
  OrderResult out;
  EXPECT_EQ(decode(std::vector<std::byte>(7), out), WireError::kBadBody);
  EXPECT_EQ(decode(std::vector<std::byte>(9 + kMaxResultTextBytes), out), WireError::kBadBody);
  EXPECT_EQ(out, OrderResult{});
  const OrderResult longest{.text = std::string(kMaxResultTextBytes + 1, 'x')};
  EXPECT_EQ(encode(longest).size(), 8 + kMaxResultTextBytes);
}

}  // namespace
}  // namespace disttf::net
