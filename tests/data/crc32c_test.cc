#include "data/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace disttf::data {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Crc32c, OfDigitsIsWhatTheCatalogueSays) { EXPECT_EQ(crc32c("123456789"), 0xE3069283U); }

// The test vectors of RFC 3720, B.4, 32 bytes each.
TEST(Crc32c, IsThatOfThePublishedTexts) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
}

TEST(Crc32c, OfATextInTwoPiecesIsThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes_of(text.substr(cut)), crc32c(text.substr(0, cut))), crc32c(text)) << cut;
  }
}

}  // namespace
}  // namespace disttf::data
