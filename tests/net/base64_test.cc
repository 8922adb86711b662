#include "net/wire/base64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace disttf::net {
namespace {

using testing::ElementsAre;

// The examples of RFC 4648, section 10.
TEST(Base64, IsThatOfThePublishedTexts) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xfb\xff\xfe"), "+//+");
  EXPECT_EQ(base64_for_urls("\xFB\xEF\xFF"), "--__");
  EXPECT_EQ(base64_for_urls("f"), "Zg");
}

TEST(Base64, OfEitherAlphabetIsDecoded) {
  std::vector<std::uint8_t> bytes;
  ASSERT_TRUE(decode_base64("_-8=", bytes));
  EXPECT_THAT(bytes, ElementsAre(0xFF, 0xEF));
  ASSERT_TRUE(decode_base64("AAEC", bytes));
  EXPECT_THAT(bytes, ElementsAre(0, 1, 2));
  ASSERT_TRUE(decode_base64("AAE", bytes));
  for (const char* text : {"A", "A===", "AB=C", "AA\n", "AAF"}) {
    EXPECT_FALSE(decode_base64(text, bytes)) << text;
  }
}

TEST(Base64, DigitsAreBits) {
  EXPECT_EQ(base64_bits(""), 0U);
  EXPECT_EQ(base64_bits("B"), 1U);
  EXPECT_EQ(base64_bits("/+"), (63U << 6U) | 62U);
  EXPECT_EQ(base64_bits("BAAAAAAAAA"), std::uint64_t{1} << 54U);
  for (const char* none : {"=", "_", "BAAAAAAAAAA"}) {
    EXPECT_EQ(base64_bits(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace disttf::net
