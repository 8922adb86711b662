// Equality of labels as classes.
#include "data/own/class_name.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace disttf::data
