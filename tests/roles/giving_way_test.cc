#include "roles/ps/shell/giving_way.h"

#include <gtest/gtest.h>

#include <chrono>

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;

// Returns how many times yielding is skipped before the next time.
int sleeps(GivingWay& giving_way) {
  int times = 0;
  while (!giving_way.begins()) {
    ++times;
  }
  return times;
}

TEST(GivingWayTest, ItDoesSoWheneverItHasNothingToDo) {
  GivingWay giving_way;
  for (int each = 0; each < 100; ++each) {
    EXPECT_TRUE(giving_way.begins());
    giving_way.took(999us);
  }
}

TEST(GivingWayTest, AfterLongTurnsOfOthersItSleepsMoreAndMoreTimes) {
  GivingWay giving_way;
  for (const int times : {0, 1, 3, 7, 15, 31, 63, 63}) {
    EXPECT_EQ(sleeps(giving_way), times);
    giving_way.took(1ms);
  }
}

TEST(GivingWayTest, ManyShortTurnsForgiveTheLongOnes) {
  GivingWay giving_way;
  giving_way.took(3ms);
  EXPECT_EQ(sleeps(giving_way), 1);
  for (int each = 0; each < 31; ++each) {
    giving_way.took(500us);
  }
  giving_way.took(3ms);
  EXPECT_EQ(sleeps(giving_way), 3) << "one too few of them";
  for (int each = 0; each < 32; ++each) {
    giving_way.took(500us);
  }
  giving_way.took(3ms);
  EXPECT_EQ(sleeps(giving_way), 1);
}

}  // namespace
}  // namespace disttf::roles
