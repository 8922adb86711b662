#include "data/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace disttf::data {
namespace {

TEST(JsonDepth, CountsTheBracketsThatAreOpenAtOnce) {
  EXPECT_EQ(json_depth(""), 0U);
  EXPECT_EQ(json_depth("1"), 0U);
  EXPECT_EQ(json_depth("[]"), 1U);
  EXPECT_EQ(json_depth(R"({"a":[1],"b":[[2],{}]})"), 3U);
  EXPECT_EQ(json_depth(std::string(100'000, '[')), 100'000U);
}

TEST(JsonDepth, BracketsInStringsAreText) {
  EXPECT_EQ(json_depth(R"(["[[[", "\"[[", "\\", []])"), 2U);
}

TEST(JsonDepth, ClosingTooOftenDoesNotWrapAround) { EXPECT_EQ(json_depth("]]]}[["), 2U); }

}  // namespace
}  // namespace disttf::data
