#include "data/json/json_text.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "text/shortest_number.h"

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

TEST(JsonText, WhatIsNoJsonIsDiscarded) {
  EXPECT_TRUE(parse_json("").is_discarded());
  EXPECT_TRUE(parse_json("{\"a\": }").is_discarded());
  EXPECT_TRUE(parse_ordered_json("[1, 2").is_discarded());
  EXPECT_TRUE(parse_json("null").is_null());
}

TEST(JsonText, WhatIsTooDeepIsDiscarded) {
  EXPECT_EQ(parse_json("[[1]]", 2).at(0).at(0), 1);
  EXPECT_TRUE(parse_json("[[1]]", 1).is_discarded());
  EXPECT_TRUE(parse_ordered_json(std::string(100'000, '['), 8).is_discarded());
}

TEST(JsonText, OrderedMembersStayInTheirOrder) {
  EXPECT_EQ(json_text(parse_ordered_json(R"({"b": 1, "a": 2})")), R"({"b":1,"a":2})");
  EXPECT_EQ(json_text(parse_json(R"({"b": 1, "a": 2})")), R"({"a":2,"b":1})");
}

TEST(JsonText, BytesThatAreNoTextAreReplaced) {
  const nlohmann::json value = "a\xff\xc3\xa9";
  EXPECT_EQ(json_text(value), "\"a\xef\xbf\xbd\xc3\xa9\"");
  EXPECT_EQ(json_text(value, {.only_ascii = true}), R"("a\ufffd\u00e9")");
}

TEST(JsonText, IsIndentedWhereAsked) {
  EXPECT_EQ(json_text(nlohmann::json{1}, {.indent = 2}), "[\n  1\n]");
}

TEST(JsonMembers, AMissingOneAndOneOfAnotherTypeReadAsNullOrEmpty) {
  const nlohmann::ordered_json value = {{"a", "x"}, {"b", 1}};
  EXPECT_EQ(member_of(value, "b"), 1);
  EXPECT_TRUE(member_of(value, "c").is_null());
  EXPECT_TRUE(member_of(member_of(value, "b"), "a").is_null());
  EXPECT_EQ(member_text(value, "a"), "x");
  EXPECT_EQ(member_text(value, "b"), "");
  EXPECT_EQ(member_text(nlohmann::json::array(), "a"), "");
}

}  // namespace
}  // namespace disttf::data

namespace disttf {
namespace {

template <typename T>
std::string by_to_chars(T value) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

TEST(ShortestNumber, IsThatOfToChars) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t bits = random();
    const auto any_float = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    ASSERT_EQ(shortest_number(any_float), by_to_chars(any_float));
    const auto any_double = std::bit_cast<double>(bits);
    ASSERT_EQ(shortest_number(any_double), by_to_chars(any_double));
    // Numbers as people write them, whole ones, and those that have few digits.
    const auto whole = static_cast<double>(bits >> bits % 64);
    ASSERT_EQ(shortest_number(whole), by_to_chars(whole));
    const double short_one =
        std::ldexp(static_cast<double>(bits % 1000), static_cast<int>(bits >> 10U) % 80);
    ASSERT_EQ(shortest_number(short_one), by_to_chars(short_one));
    const float cents = static_cast<float>(bits % 1'000'000) / 100'000;
    ASSERT_EQ(shortest_number(cents), by_to_chars(cents));
  }
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  for (const float value : {0.0F, -0.0F, kInfinite, -kInfinite, std::nanf(""), 1e5F, 1e6F}) {
    EXPECT_EQ(shortest_number(value), by_to_chars(value));
  }
}

}  // namespace
}  // namespace disttf
