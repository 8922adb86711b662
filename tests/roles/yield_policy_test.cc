#include "roles/ps/shell/yield_policy.h"

#include <gtest/gtest.h>

#include <chrono>

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;

// Returns how many times yielding is skipped before the next time.
int sleeps(YieldPolicy& yield_policy) {
  int times = 0;
  while (!yield_policy.begins()) {
    ++times;
  }
  return times;
}

TEST(YieldPolicyTest, ItDoesSoWheneverItHasNothingToDo) {
  YieldPolicy yield_policy;
  for (int each = 0; each < 100; ++each) {
    EXPECT_TRUE(yield_policy.begins());
    yield_policy.took(999us);
  }
}

TEST(YieldPolicyTest, BacksOffExponentiallyAfterLongTurnsOfOthers) {
  YieldPolicy yield_policy;
  for (const int times : {0, 1, 3, 7, 15, 31, 63, 63}) {
    EXPECT_EQ(sleeps(yield_policy), times);
    yield_policy.took(1ms);
  }
}

TEST(YieldPolicyTest, ManyShortTurnsForgiveTheLongOnes) {
  YieldPolicy yield_policy;
  yield_policy.took(3ms);
  EXPECT_EQ(sleeps(yield_policy), 1);
  for (int each = 0; each < 31; ++each) {
    yield_policy.took(500us);
  }
  yield_policy.took(3ms);
  EXPECT_EQ(sleeps(yield_policy), 3) << "one too few of them";
  for (int each = 0; each < 32; ++each) {
    yield_policy.took(500us);
  }
  yield_policy.took(3ms);
  EXPECT_EQ(sleeps(yield_policy), 1);
}

}  // namespace
}  // namespace disttf::roles
