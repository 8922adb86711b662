// The bytes of the messages between a task and its program: docs/program_protocol.md.
#include "run/program/program_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace disttf::roles {
namespace {

constexpr ProgramMessage kMessage{.kind = ProgramKind::kCompute,
                                  .number = 0x01020304,
                                  .step = 0x1112131415161718,
                                  .slot = 0x2122232425262728,
                                  .seed = 0x3132333435363738,
                                  .count = 0x4142434445464748,
                                  .value = 1.5};

std::vector<std::byte> packet_of(const ProgramMessage& message, const std::string& body) {
  const auto header = encode(message, body.size());
  std::vector<std::byte> packet(header.begin(), header.end());
  const auto bytes = std::as_bytes(std::span(body));
  packet.insert(packet.end(), bytes.begin(), bytes.end());
  return packet;
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte each : bytes) {
    text += kDigits[std::to_integer<unsigned>(each) >> 4U];
    text += kDigits[std::to_integer<unsigned>(each) & 0xFU];
  }
  return text;
}

TEST(ProgramMessage, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex(encode(kMessage, 5)),
            "44545031"  // magic
            "4300"
            "0000"              // kind 67, flags
            "05000000"          // body_size
            "04030201"          // number
            "1817161514131211"  // step
            "2827262524232221"  // slot
            "3837363534333231"  // seed
            "4847464544434241"  // count
            "000000000000f83f"  // value
            "0000000000000000");
}

TEST(ProgramMessage, IsReadAsItWasWritten) {
  const std::vector<std::byte> packet = packet_of(kMessage, "hello");
  std::string why;
  const auto read = decode(packet, why);
  ASSERT_TRUE(read) << why;
  EXPECT_EQ(read->message, kMessage);
  EXPECT_EQ(read->text(), "hello");
}

TEST(ProgramMessage, OfAWrongFormIsRefused) {
  const std::vector<std::byte> good = packet_of(kMessage, "hello");
  std::string why;
  for (const std::size_t size : {std::size_t{0}, std::size_t{63}, good.size() - 1}) {
    EXPECT_FALSE(decode(std::span(good).first(size), why)) << size;
  }
  // Magic, flags, body_size, reserved.
  for (const std::size_t at : {0U, 6U, 8U, 63U}) {
    std::vector<std::byte> wrong = good;
    wrong[at] ^= std::byte{1};
    EXPECT_FALSE(decode(wrong, why)) << at;
    EXPECT_FALSE(why.empty());
  }
}

TEST(ProgramMessage, NamesItsKind) {
  EXPECT_EQ(name_of(ProgramKind::kGradient), "GRADIENT");
  EXPECT_EQ(name_of(static_cast<ProgramKind>(99)), "a message of kind 99");
}

}  // namespace
}  // namespace disttf::roles
