#include "net/wire/text.h"

#include <gtest/gtest.h>

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

TEST(CutUtf8, NeverEndsInsideACharacter) {
  EXPECT_EQ(cut_utf8("a€", 3), "a");
  EXPECT_EQ(cut_utf8("a€", 4), "a€");
  EXPECT_EQ(cut_utf8("\x80\x80\x80", 2), "");
}

}  // namespace
}  // namespace disttf::net
