#include "roles/chief/core/view_keeper.h"

#include <gtest/gtest.h>

namespace disttf::roles {
namespace {

using net::Report;
using net::Standing;
using net::View;

constexpr Report kNew{};  // a process that has just started

Report primary(std::uint32_t view, bool holds = true) {
  return {.view = view, .standing = Standing::kPrimary, .holds = holds};
}

Report backup(std::uint32_t view, bool holds = true) {
  return {.view = view, .standing = Standing::kBackup, .holds = holds};
}

Report wants_pair(std::uint32_t view) {
  Report report = primary(view);
  report.wants_pair = true;
  return report;
}

Report wants_alone(std::uint32_t view) {
  Report report = primary(view);
  report.wants_alone = true;
  return report;
}

Report of_trainers(Report report, std::initializer_list<std::size_t> ranks) {
  for (const std::size_t rank : ranks) {
    report.trainers |= net::in_set(rank);
  }
  return report;
}

class ViewKeeperTest : public testing::Test {
 protected:
  // A run that has begun: host 0 is the primary in view 1 and holds a state.
  void begin() {
    keeper_.hear(0, kNew);
    keeper_.hear(1, kNew);
    keeper_.hear(0, primary(1));
    keeper_.hear(1, backup(1, false));
  }

  // The same with a complete backup, in view 2.
  void begin_paired() {
    begin();
    keeper_.hear(1, backup(1));
    keeper_.hear(0, wants_pair(1));
    keeper_.hear(0, primary(2));
    keeper_.hear(1, backup(2));
  }

  // The pair is in view 4 then.
  void move_to_1_for_trainer_1() {
    keeper_.hear(0, of_trainers(primary(2), {1}));
    keeper_.hear(1, of_trainers(backup(2), {1}));
    expect_view(3, 1, false);
    keeper_.hear(0, backup(3));
    keeper_.hear(1, wants_pair(3));
    keeper_.hear(1, primary(4));
    keeper_.hear(0, backup(4));
    expect_view(4, 1, true);
  }

  void expect_view(std::uint32_t number, std::uint8_t primary, bool paired) {
    ASSERT_TRUE(keeper_.view().has_value());
    EXPECT_EQ(*keeper_.view(), (View{.number = number, .primary = primary, .paired = paired}));
  }

  ViewKeeper keeper_;
};

TEST_F(ViewKeeperTest, DecidesNothingBeforeBothHostsHaveReported) {
  keeper_.hear(0, kNew);
  EXPECT_FALSE(keeper_.view().has_value());
  keeper_.hear(1, kNew);
  expect_view(1, 0, false);
}

TEST_F(ViewKeeperTest, PairsThePrimaryWithABackupThatIsComplete) {
  begin();
  expect_view(1, 0, false);
  keeper_.hear(1, backup(1));
  keeper_.hear(0, wants_pair(1));
  expect_view(2, 0, true);
}

TEST_F(ViewKeeperTest, APairedPrimaryThatIsLostIsReplaced) {
  begin_paired();
  keeper_.lose(0);
  expect_view(3, 1, false);
}

TEST_F(ViewKeeperTest, ALonePrimaryThatIsLostIsWaitedFor) {
  begin();
  keeper_.lose(0);
  expect_view(1, 0, false);
  keeper_.hear(0, primary(1));
  expect_view(1, 0, false);
}

TEST_F(ViewKeeperTest, ABackupThatHasNotHeardOfThePairIsAskedFirst) {
  begin();
  keeper_.hear(1, backup(1));
  keeper_.hear(0, wants_pair(1));
  keeper_.lose(0);
  expect_view(2, 0, true);  // host 1 may have been started anew
  keeper_.hear(1, backup(2));
  expect_view(3, 1, false);
}

TEST_F(ViewKeeperTest, ABackupThatWasLostWithItsPrimaryIsNotPromoted) {
  begin_paired();
  keeper_.lose(1);
  keeper_.hear(1, kNew);
  keeper_.lose(0);
  expect_view(2, 0, true);
  keeper_.hear(0, kNew);
  expect_view(3, 0, false);
}

TEST_F(ViewKeeperTest, APrimaryMayGoOnAloneOnceItHasAsked) {
  begin_paired();
  keeper_.lose(1);
  expect_view(2, 0, true);
  keeper_.hear(0, wants_alone(2));
  expect_view(3, 0, false);
}

TEST_F(ViewKeeperTest, ABackupIsNeverPromotedAfterItsPrimaryWentOnAlone) {
  begin_paired();
  keeper_.hear(0, wants_alone(2));
  keeper_.lose(0);
  keeper_.hear(1, backup(2));
  keeper_.hear(1, backup(3));
  expect_view(3, 0, false);
}

TEST_F(ViewKeeperTest, APrimaryThatWasReplacedAsksInVain) {
  begin_paired();
  keeper_.lose(0);
  keeper_.hear(1, primary(3));
  keeper_.hear(0, wants_alone(2));
  expect_view(3, 1, false);
}

TEST_F(ViewKeeperTest, AnOldWishIsNotGrantedInANewView) {
  begin_paired();
  keeper_.hear(0, wants_alone(2));
  keeper_.hear(0, wants_alone(2));  // sent before it was told
  expect_view(3, 0, false);
}

TEST_F(ViewKeeperTest, ANewProcessInThePlaceOfAPairedPrimaryIsABackup) {
  begin_paired();
  keeper_.hear(0, kNew);
  expect_view(3, 1, false);
}

TEST_F(ViewKeeperTest, ANewProcessInThePlaceOfALonePrimaryBeginsAnew) {
  begin();
  keeper_.hear(0, kNew);
  expect_view(2, 0, false);
  keeper_.hear(0, primary(2, false));
  expect_view(2, 0, false);
}

TEST_F(ViewKeeperTest, ANewChiefFindsTheViewThatHolds) {
  keeper_.hear(1, backup(6));
  keeper_.hear(0, primary(6));
  expect_view(6, 0, true);
  keeper_.lose(0);
  expect_view(7, 1, false);
}

TEST_F(ViewKeeperTest, ANewChiefFindsThatThePrimaryIsAlone) {
  keeper_.hear(0, backup(7, false));
  keeper_.hear(1, primary(6));
  expect_view(8, 1, false);
  keeper_.lose(1);
  expect_view(8, 1, false);
}

TEST_F(ViewKeeperTest, ANewChiefFindsThatOnlyTheBackupIsLeft) {
  keeper_.hear(0, kNew);
  keeper_.hear(1, backup(4));
  expect_view(5, 1, false);
}

TEST_F(ViewKeeperTest, ANewChiefFindsThatThePairWasNotToldToThePrimary) {
  keeper_.hear(0, wants_pair(1));
  keeper_.hear(1, backup(2));
  expect_view(2, 0, true);
}

TEST_F(ViewKeeperTest, ANewChiefFindsNothing) {
  keeper_.hear(0, kNew);
  keeper_.hear(1, backup(3, false));
  expect_view(4, 0, false);
}

TEST_F(ViewKeeperTest, APrimaryThatATrainerOfTheBackupDoesNotReachIsReplaced) {
  begin_paired();
  keeper_.hear(0, of_trainers(primary(2), {1}));
  expect_view(2, 0, true);  // it may be dead
  keeper_.hear(1, of_trainers(backup(2), {2}));
  expect_view(2, 0, true);  // that is another one
  keeper_.hear(1, of_trainers(backup(2), {1, 2}));
  expect_view(3, 1, false);
  EXPECT_EQ(keeper_.left(), 0);
}

TEST_F(ViewKeeperTest, ACopyThatIsNotAcknowledgedIsNoPlaceToGoTo) {
  begin();
  keeper_.hear(0, of_trainers(primary(1), {1}));
  keeper_.hear(1, of_trainers(backup(1), {1}));
  expect_view(1, 0, false);
  keeper_.hear(1, of_trainers(backup(1, false), {1}));
  expect_view(1, 0, false);
}

// Then nothing helps, and the run is to end by itself.
TEST_F(ViewKeeperTest, WhereEachHostIsOutOfSomebodysReachTheViewStays) {
  begin_paired();
  move_to_1_for_trainer_1();
  keeper_.hear(0, of_trainers(backup(4), {2}));
  keeper_.hear(1, of_trainers(primary(4), {2}));
  expect_view(4, 1, true);
}

TEST_F(ViewKeeperTest, AHostThatHasBeenThePrimarySinceMayBeGoneToAgain) {
  begin_paired();
  move_to_1_for_trainer_1();
  keeper_.lose(1);
  expect_view(5, 0, false);
  EXPECT_EQ(keeper_.left(), std::nullopt);
  keeper_.hear(0, wants_pair(5));
  keeper_.hear(1, backup(5));
  keeper_.hear(0, primary(6));
  keeper_.hear(1, backup(6));
  expect_view(6, 0, true);
  keeper_.hear(0, of_trainers(primary(6), {1}));
  keeper_.hear(1, of_trainers(backup(6), {1}));
  expect_view(7, 1, false);
}

TEST_F(ViewKeeperTest, AfterTheEndNothingIsDecided) {
  begin_paired();
  Report finished = primary(2);
  finished.finished = true;
  keeper_.hear(0, finished);
  keeper_.lose(0);
  expect_view(2, 0, true);
}

}  // namespace
}  // namespace disttf::roles
