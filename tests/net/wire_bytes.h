// Helpers for tests of frame bodies.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "net/wire/frame.h"

namespace disttf::net {

[[nodiscard]] inline std::string hex(std::span<const std::byte> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes) {
    out += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    out += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return out;
}

// Expects that decode() reads what encode() writes, and refuses any other length.
template <typename Body>
void expect_read_back(const Body& body) {
  std::vector<std::byte> bytes = encode(body);
  Body out;
  ASSERT_FALSE(decode(bytes, out));
  EXPECT_EQ(out, body);
  out = {};
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(std::span(bytes).first(size), out), WireError::kBadBody) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode(bytes, out), WireError::kBadBody);
  EXPECT_EQ(out, Body{}) << "a rejected body changed the output";
}

// Decodes the body with one byte changed.
template <typename Body>
[[nodiscard]] std::error_code decode_with(const Body& body, std::size_t at, std::uint8_t value) {
  std::vector<std::byte> bytes = encode(body);
  bytes[at] = std::byte{value};
  Body out;
  return decode(bytes, out);
}

// Helpers for tests of messages: net/wire/messages.h and its neighbours.
template <typename Message>
[[nodiscard]] std::string bytes_of(const Message& message) {
  std::array<std::byte, kHeaderBytes> bytes{};
  encode_header(message.to_header(), bytes);
  return hex(bytes);
}

// The fields and flags of a header, one in each.
inline constexpr std::array<FrameHeader, 4> kFields = {
    FrameHeader{.step = 1}, {.sequence = 1}, {.range_begin = 1}, {.generation = 1}};
inline constexpr unsigned kFlagBits = 11;

// Checks that `message` has these bytes, is decoded from them, and is refused with any field or
// flag that is not in `may_have`.
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
  other.kind = header.kind == FrameKind::kAck ? FrameKind::kHello : FrameKind::kAck;
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

}  // namespace disttf::net
