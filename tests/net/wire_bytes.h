// Helpers for tests of frame bodies.
#pragma once

#include <gtest/gtest.h>

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

}  // namespace disttf::net
