#include "text/shortest_number.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

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
