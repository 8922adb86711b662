#include "net/wire/text.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "net/wire/base64.h"
#include "text/shown_text.h"

namespace disttf::net {
namespace {

TEST(Quoted, EscapesWhatWouldSpoilALine) {
  EXPECT_EQ(net::quoted("a\"b\\c\n\t\x01\xFF"), R"("a\"b\\c\n\t\x01\xff")");
}

TEST(Quoted, CutsALongValue) {
  EXPECT_EQ(net::quoted(std::string(200, 'a')), "\"" + std::string(kMaxShownBytes, 'a') + "\"...");
  EXPECT_EQ(net::quoted(std::string(kMaxShownBytes, 'a')),
            "\"" + std::string(kMaxShownBytes, 'a') + "\"");
}

TEST(WholeNumber, TakesDigitsAlone) {
  EXPECT_EQ(whole_number("0"), 0U);
  EXPECT_EQ(whole_number("00123"), 123U);
  EXPECT_EQ(whole_number("18446744073709551615"), 18446744073709551615U);
  for (const std::string_view text : {"", "-1", "+1", " 1", "1 ", "1x", "18446744073709551616"}) {
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
  }
}

TEST(HexDigit, ReadsBothLetterCases) {
  static constexpr std::string_view kLower = "0123456789abcdef";
  static constexpr std::string_view kUpper = "0123456789ABCDEF";
  for (int value = 0; value < 16; ++value) {
    EXPECT_EQ(hex_digit(kLower[static_cast<std::size_t>(value)]), value);
    EXPECT_EQ(hex_digit(kUpper[static_cast<std::size_t>(value)]), value);
  }
  for (const char other : {'g', 'G', '/', ':', '@', '`', ' '}) EXPECT_EQ(hex_digit(other), -1);
}

TEST(Joined, SeparatesTheTextsOfItems) {
  EXPECT_EQ(joined(std::vector<std::string_view>{}, ", "), "");
  EXPECT_EQ(joined(std::vector<std::string_view>{"a"}, ", "), "a");
  EXPECT_EQ(joined(std::vector{1, 22, 3}, "; ", [](int number) { return std::to_string(number); }),
            "1; 22; 3");
}

TEST(OneLine, KeepsUtf8) { EXPECT_EQ(one_line("naïve € 𝄞"), "naïve € 𝄞"); }

TEST(OneLine, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(one_line("\x80"), "?");                 // a later byte on its own
  EXPECT_EQ(one_line("\xC0\xAF"), "??");            // overlong
  EXPECT_EQ(one_line("\xED\xA0\x80"), "???");       // a surrogate
  EXPECT_EQ(one_line("\xF4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(one_line("a\xE2\x82"), "a??");          // cut short
}

TEST(OneLine, ReplacesControlCharacters) {
  EXPECT_EQ(one_line("a\r\n\x7F\xC2\x9B"
                     "b"),
            "a    b");
}

TEST(OneLine, ReplacesWhatEndsALineOrReordersText) {
  EXPECT_EQ(one_line("a\u2028\u2029\u061c\u200e\u200f\u202a\u202e\u2066\u2069z"), "a         z");
}

// What each external character or byte becomes, and which ones stay.
TEST(ShownText, EscapesWhatIsNotSafeToShow) {
  const struct {
    std::string_view text, shown;
  } cases[] = {
      {"naïve € 𝄞 \\", "naïve € 𝄞 \\"},
      {"a\nb\rc\td", R"(a\nb\rc\td)"},
      {std::string_view("\0\x1b[31m\a", 7), R"(\x00\x1b[31m\x07)"},
      {"\x7f\u0080\u009b\u009f\u00a0", "\\u007f\\u0080\\u009b\\u009f\u00a0"},
      {"\u2028\u2029", R"(\u2028\u2029)"},
      {"\u061c\u200e\u200f", R"(\u061c\u200e\u200f)"},
      {"\u202a\u202b\u202c\u202d\u202e", R"(\u202a\u202b\u202c\u202d\u202e)"},
      {"\u2066\u2067\u2068\u2069", R"(\u2066\u2067\u2068\u2069)"},
      {"\u200c\u200d\u2027\u202f", "\u200c\u200d\u2027\u202f"},  // joiners are part of words
      {"\u200b\u2060\u206f\ufeff", R"(\u200b\u2060\u206f\ufeff)"},
      {"\x80\xC0\xAF\xED\xA0\x80", R"(\x80\xc0\xaf\xed\xa0\x80)"},
      {"\xF4\x90\x80\x80 a\xE2\x82", R"(\xf4\x90\x80\x80 a\xe2\x82)"},
  };
  for (const auto& each : cases) EXPECT_EQ(shown_text(each.text), each.shown);
}

TEST(ShownText, KeepsTheLineBreaksOfOurOwn) {
  EXPECT_EQ(shown_text("from any mirror:\n  http://a: 404\n12:00 I forged", KeptBreaks::kIndented),
            "from any mirror:\n  http://a: 404\\n12:00 I forged");
  EXPECT_EQ(shown_text("a\tb\n\x1b", KeptBreaks::kAll), "a\tb\n\\x1b");
}

TEST(CutUtf8, NeverEndsInsideACharacter) {
  EXPECT_EQ(cut_utf8("a€", 3), "a");
  EXPECT_EQ(cut_utf8("a€", 4), "a€");
  EXPECT_EQ(cut_utf8("\x80\x80\x80", 2), "");
}

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
