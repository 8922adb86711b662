#include "net/wire/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, NeverExceedsADoublingCeiling) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Backoff backoff{std::mt19937_64(seed)};
    std::chrono::milliseconds ceiling = Backoff::kFirst;
    for (int attempt = 0; attempt < 12; ++attempt) {
      const auto delay = backoff.next();
      EXPECT_GE(delay, 1ms);
      EXPECT_LE(delay, ceiling);
      ceiling = std::min(2 * ceiling, Backoff::kLongest);
    }
  }
}

TEST(Backoff, UsesTheWholeRangeUnderItsCeiling) {
  std::chrono::milliseconds longest{0};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Backoff backoff{std::mt19937_64(seed)};
    for (int attempt = 0; attempt < 8; ++attempt) longest = std::max(longest, backoff.next());
  }
  EXPECT_GT(longest, Backoff::kLongest * 9 / 10);
}

TEST(Backoff, StartsAgainAfterASuccess) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Backoff backoff{std::mt19937_64(seed)};
    for (int attempt = 0; attempt < 8; ++attempt) static_cast<void>(backoff.next());
    backoff.reset();
    EXPECT_LE(backoff.next(), Backoff::kFirst);
  }
}

TEST(Backoff, SpreadsTasksThatFailedTogether) {
  std::set<std::chrono::milliseconds> delays;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    delays.insert(Backoff{std::mt19937_64(seed)}.next());
  }
  EXPECT_GT(delays.size(), 20U);
}

}  // namespace
}  // namespace disttf::net
