#include "net/wire/codec.h"

#include <gtest/gtest.h>

namespace disttf::net {
namespace {

TEST(ByteWriter, WritesLittleEndian) {
  ByteWriter writer(7);
  writer.put(std::uint32_t{0x01020304});
  writer.put(std::uint16_t{0x0506});
  writer.put(std::uint8_t{0xFF});
  const std::vector<std::byte> expected{std::byte{4}, std::byte{3}, std::byte{2},   std::byte{1},
                                        std::byte{6}, std::byte{5}, std::byte{0xFF}};
  EXPECT_EQ(std::move(writer).take(), expected);
}

TEST(ByteReader, ReadsBackWhatWasWritten) {
  ByteWriter writer(8);
  writer.put(std::uint64_t{0xFEDCBA9876543210});
  const std::vector<std::byte> bytes = std::move(writer).take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.get<std::uint64_t>(), 0xFEDCBA9876543210U);
  EXPECT_TRUE(reader.complete());
}

TEST(ByteReader, TurnsBadPastTheEndAndStaysSo) {
  const std::vector<std::byte> bytes(3, std::byte{1});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.get<std::uint32_t>(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.get<std::uint8_t>(), 0U);
  EXPECT_FALSE(reader.complete());
}

TEST(ByteReader, IsNotCompleteWhileBytesAreLeft) {
  const std::vector<std::byte> bytes(2);
  ByteReader reader(bytes);
  static_cast<void>(reader.get<std::uint8_t>());
  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.complete());
}

}  // namespace
}  // namespace disttf::net
