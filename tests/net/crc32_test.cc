#include "net/wire/crc32.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstddef>
#include <random>
#include <vector>

namespace disttf::net {
namespace {

TEST(Crc32, OfTheStandardsCheckIsTheStandards) {
  std::vector<std::byte> bytes;
  for (const char digit : {'1', '2', '3', '4', '5', '6', '7', '8', '9'}) {
    bytes.push_back(static_cast<std::byte>(digit));
  }
  EXPECT_EQ(crc32(bytes), 0xCBF43926U);
}

// Covers each remainder modulo the eight bytes of a step.
TEST(Crc32, IsZlibsForAllLengths) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes;
  for (std::size_t length = 0; length <= 300; ++length) {
    const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
    EXPECT_EQ(crc32(bytes), ::crc32(::crc32(0, nullptr, 0), data, static_cast<uInt>(length)))
        << length;
    bytes.push_back(static_cast<std::byte>(random()));
  }
}

}  // namespace
}  // namespace disttf::net
