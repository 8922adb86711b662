#include "roles/ps/shell/giving_way.h"

#include <gtest/gtest.h>

#include <chrono>

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;

class GivingWayTest : public testing::Test {
 protected:
  void come(GivingWay& to, std::size_t times, net::Clock::duration distance) {
    for (std::size_t each = 0; each < times; ++each) {
      to.came(1, now_ += distance);
    }
  }
  // How many times are slept through before it gives way again.
  static int sleeps(GivingWay& giving_way) {
    int times = 0;
    while (!giving_way.begins()) {
      ++times;
    }
    return times;
  }

  net::Clock::time_point now_ = net::Clock::time_point() + 1h;
  GivingWay with_room_{true, now_};
  GivingWay crowded_{false, now_};
};

TEST_F(GivingWayTest, WhereThereIsRoomItDoesSoWheneverItHasNothingToDo) {
  EXPECT_TRUE(with_room_.begins());
  come(with_room_, 100, 10ms);
  EXPECT_TRUE(with_room_.begins());
}

TEST_F(GivingWayTest, WhereThereIsNoneItDoesSoWhileFramesComeClose) {
  EXPECT_FALSE(crowded_.begins());
  come(crowded_, 10, 10us);
  EXPECT_FALSE(crowded_.begins()) << "a few may be chance";
  come(crowded_, 200, 10us);
  EXPECT_TRUE(crowded_.begins());
  come(crowded_, 100, 200us);
  EXPECT_FALSE(crowded_.begins()) << "they compute in between";
  for (int each = 0; each < 200; ++each) {
    crowded_.came(8, now_ += 200us);
  }
  EXPECT_TRUE(crowded_.begins()) << "of eight at once each counts";
}

TEST_F(GivingWayTest, AfterLongTurnsOfOthersItSleepsMoreAndMoreTimes) {
  for (const int times : {0, 1, 3, 7, 15, 31, 63, 63}) {
    EXPECT_EQ(sleeps(with_room_), times);
    with_room_.took(3ms);
  }
}

TEST_F(GivingWayTest, ManyShortTurnsForgiveTheLongOnes) {
  with_room_.took(3ms);
  EXPECT_EQ(sleeps(with_room_), 1);
  for (int each = 0; each < 31; ++each) {
    with_room_.took(1ms);
  }
  with_room_.took(3ms);
  EXPECT_EQ(sleeps(with_room_), 3) << "one too few of them";
  for (int each = 0; each < 32; ++each) {
    with_room_.took(1ms);
  }
  with_room_.took(3ms);
  EXPECT_EQ(sleeps(with_room_), 1);
}

}  // namespace
}  // namespace disttf::roles
