// Equality of labels as classes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/own/class_name.h"
#include "data/own/column_summary.h"
#include "data/own/shown_text.h"
#include "text/shown_text.h"

namespace disttf::data {
namespace {

TEST(ClassName, ComparesNumbersAsNumbers) {
  for (const char* const one : {"1", "1.0", "+1", "1e0", "1.", "10e-1", "0.1e1", "1.000E+00"}) {
    EXPECT_EQ(class_name_of(one), "1") << one;
  }
  for (const char* const half : {"0.5", ".5", "5e-1", "+0.50", "0.05e1"}) {
    EXPECT_EQ(class_name_of(half), "0.5") << half;
  }
  for (const char* const zero : {"0", "-0", "0.0", "-0.00", "0e7", ".0"}) {
    EXPECT_EQ(class_name_of(zero), "0") << zero;
  }
  EXPECT_EQ(class_name_of("-1.0"), "-1");
  EXPECT_EQ(class_name_of("1e3"), "1000");
  EXPECT_EQ(class_name_of("100"), "100");
  EXPECT_EQ(class_name_of("12.50"), "12.5");
  EXPECT_EQ(class_name_of("1e-9"), "1e-9");
  EXPECT_EQ(class_name_of("0.000000001"), "1e-9");
}

TEST(ClassName, ComparesNumbersExactly) {
  EXPECT_NE(class_name_of("12345678901234567890"), class_name_of("12345678901234567891"));
  EXPECT_EQ(class_name_of("12345678901234567890.0"), "12345678901234567890");
  EXPECT_NE(class_name_of("16777216"), class_name_of("16777217"));
}

TEST(ClassName, KeepsIdentifiersAndWordsAsTheyAre) {
  for (const char* const word :
       {"007", "00", "01", "-01", "00.5", "nan", "inf",     "0x10", "1_000", "1,5", "1 2",
        "",    "+",  "-",  ".",   "1e",   "e5",  "1e99999", "--1",  "yes",   "Yes", "1a"}) {
    EXPECT_EQ(class_name_of(word), word);
    EXPECT_FALSE(is_number_name(word)) << word;
  }
}

TEST(ClassName, OfAClassNameIsThatName) {
  for (const char* const text : {"1e0", "123456789e40", "1e9998", "1e-9998", "-0.00000012", "1e41",
                                 "99999999999999999999999999999999999999999999999999", "f\xFCr"}) {
    const std::string name = class_name_of(text);
    EXPECT_EQ(class_name_of(name), name) << text;
  }
}

TEST(ClassName, IsUtf8) {
  EXPECT_EQ(class_name_of("f\xFCr"), "f\xC3\xBCr");
  EXPECT_EQ(class_name_of("f\xC3\xBCr"), "f\xC3\xBCr");
  EXPECT_EQ(class_name_of("\x80"), "\xE2\x82\xAC") << "the sign of the euro in Windows-1252";
  EXPECT_NE(class_name_of("\x81"), class_name_of("\x8D"));
}

TEST(ColumnSums, AreOfEachColumn) {
  ColumnSums sums({"a", "b"});
  sums.add(std::vector<float>{1, 10, 3, 10});
  sums.add(std::vector<float>{5, 10});
  const auto columns = sums.summaries();
  EXPECT_EQ(columns[0].name, "a");
  EXPECT_EQ(columns[0].least, 1);
  EXPECT_EQ(columns[0].most, 5);
  EXPECT_DOUBLE_EQ(columns[0].mean, 3);
  EXPECT_DOUBLE_EQ(columns[0].deviation, 1.6329931618554521);  // sqrt(8/3)
  EXPECT_DOUBLE_EQ(columns[1].mean, 10);
  EXPECT_DOUBLE_EQ(columns[1].deviation, 0);
}

// The mean of the squares minus the square of the mean would lose all precision here.
TEST(ColumnSums, KeepTheDeviationOfLargeNumbers) {
  ColumnSums sums({"a"});
  for (int block = 0; block < 100; ++block) {
    sums.add(std::vector<float>{16'000'000, 16'000'001, 16'000'002});
  }
  EXPECT_NEAR(sums.summaries()[0].deviation, 0.816496580927726, 1e-9);  // sqrt(2/3)
}

TEST(RowCounters, SeeWhichColumnsCountRows) {
  RowCounters counters(3);
  counters.add(std::vector<float>{7, 1, 1, 8, 2, 2});
  counters.add(std::vector<float>{9, 2, 4});
  EXPECT_TRUE(counters.counts(0));
  EXPECT_FALSE(counters.counts(1));
  EXPECT_FALSE(counters.counts(2));
}

// External text in the form that a log shows.

TEST(ShownText, HasNoControlCharacters) {
  EXPECT_EQ(shown_text("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(shown_text("\033]0;x\007\x7F"), "\\x1b]0;x\\x07\\u007f");
  EXPECT_EQ(shown_text("\xC2\x9B"
                       "31m"),
            "\\u009b31m")
      << "CSI of terminals";
  EXPECT_EQ(shown_text(std::string("a\0b", 3)), "a\\x00b");
}

TEST(ShownText, HasNoCharactersThatReorderOrHideText) {
  EXPECT_EQ(shown_text("a\xE2\x80\xAE"
                       "b"),
            "a\\u202eb");
  EXPECT_EQ(shown_text("a\xE2\x81\xA6"
                       "b"),
            "a\\u2066b");
  EXPECT_EQ(shown_text("a\xE2\x80\xA8"
                       "b"),
            "a\\u2028b");
  EXPECT_EQ(shown_text("a\xE2\x80\x8B"
                       "b"),
            "a\\u200bb");
}

TEST(ShownText, IsUtf8) {
  EXPECT_EQ(shown_text("f\xC3\xBCr \xE2\x82\xAC"), "f\xC3\xBCr \xE2\x82\xAC");
  EXPECT_EQ(shown_text("f\xFCr"), "f\\xfcr");
  EXPECT_EQ(shown_text("\xC3"), "\\xc3");
  EXPECT_EQ(shown_text("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
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
