// External text in the form that a log shows.
#include "data/own/shown_text.h"

#include <gtest/gtest.h>

#include <string>

namespace disttf::data {
namespace {

TEST(ShownText, HasNoControlCharacters) {
  EXPECT_EQ(escaped("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(escaped("\033]0;x\007\x7F"), "\\x1b]0;x\\x07\\u007f");
  EXPECT_EQ(escaped("\xC2\x9B"
                    "31m"),
            "\\u009b31m")
      << "CSI of terminals";
  EXPECT_EQ(escaped(std::string("a\0b", 3)), "a\\x00b");
}

TEST(ShownText, HasNoCharactersThatReorderOrHideText) {
  EXPECT_EQ(escaped("a\xE2\x80\xAE"
                    "b"),
            "a\\u202eb");
  EXPECT_EQ(escaped("a\xE2\x81\xA6"
                    "b"),
            "a\\u2066b");
  EXPECT_EQ(escaped("a\xE2\x80\xA8"
                    "b"),
            "a\\u2028b");
  EXPECT_EQ(escaped("a\xE2\x80\x8B"
                    "b"),
            "a\\u200bb");
}

TEST(ShownText, IsUtf8) {
  EXPECT_EQ(escaped("f\xC3\xBCr \xE2\x82\xAC"), "f\xC3\xBCr \xE2\x82\xAC");
  EXPECT_EQ(escaped("f\xFCr"), "f\\xfcr");
  EXPECT_EQ(escaped("\xC3"), "\\xc3");
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
}

TEST(ShownText, CutsNoCharacter) {
  std::string cell = "x";
  for (int i = 0; i < 40; ++i) {
    cell += "\xC3\xA4";
  }
  EXPECT_EQ(printable(cell), cell.substr(0, 59) + "...");
  EXPECT_EQ(printable(std::string(100, '\x80')).substr(0, 4), "\\x80");
}

}  // namespace
}  // namespace disttf::data
