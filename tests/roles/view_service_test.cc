#include "roles/chief/core/view_service.h"

#include <gtest/gtest.h>

namespace disttf::roles {
namespace {

using net::ReplicaRole;
using net::Report;
using net::View;

constexpr Report kNew{};  // a process that has just started
// The chief that the service belongs to, two earlier ones and a later one.
constexpr std::uint64_t kChief = 7;
constexpr std::uint64_t kOlder = 6;
constexpr std::uint64_t kOldest = 5;
constexpr std::uint64_t kNewer = 8;

Report primary(std::uint32_t view, bool holds = true) {
  return {.view = {kChief, view}, .replica_role = ReplicaRole::kPrimary, .holds = holds};
}

Report backup(std::uint32_t view, bool holds = true) {
  return {.view = {kChief, view}, .replica_role = ReplicaRole::kBackup, .holds = holds};
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

Report in_view_of(std::uint64_t chief, Report report) {
  report.view.chief = chief;
  return report;
}

Report in_a_pair(Report report) {
  report.paired = true;
  return report;
}

Report of_trainers(Report report, std::initializer_list<std::size_t> ranks) {
  for (const std::size_t rank : ranks) {
    report.trainers |= net::in_set(rank);
  }
  return report;
}

class ViewServiceTest : public testing::Test {
 protected:
  // A run that has begun: host 0 is the primary in view 1 and holds a state.
  void begin() {
    service_.record_report(0, kNew);
    service_.record_report(1, kNew);
    service_.record_report(0, primary(1));
    service_.record_report(1, backup(1, false));
  }

  // The same with a complete backup, in view 2.
  void begin_paired() {
    begin();
    service_.record_report(1, backup(1));
    service_.record_report(0, wants_pair(1));
    service_.record_report(0, primary(2));
    service_.record_report(1, backup(2));
  }

  // Afterwards the pair is in view 4.
  void move_to_1_for_trainer_1() {
    service_.record_report(0, of_trainers(primary(2), {1}));
    service_.record_report(1, of_trainers(backup(2), {1}));
    expect_view(3, 1, false);
    service_.record_report(0, backup(3));
    service_.record_report(1, wants_pair(3));
    service_.record_report(1, primary(4));
    service_.record_report(0, backup(4));
    expect_view(4, 1, true);
  }

  void expect_view(std::uint32_t number, std::uint8_t primary, bool paired) {
    ASSERT_TRUE(service_.view().has_value());
    EXPECT_EQ(*service_.view(),
              (View{.number = {kChief, number}, .primary = primary, .paired = paired}));
  }

  ViewService service_{kChief};
};

TEST_F(ViewServiceTest, DecidesNothingBeforeBothHostsHaveReported) {
  service_.record_report(0, kNew);
  EXPECT_FALSE(service_.view().has_value());
  service_.record_report(1, kNew);
  expect_view(1, 0, false);
}

TEST_F(ViewServiceTest, PairsThePrimaryWithABackupThatIsComplete) {
  begin();
  expect_view(1, 0, false);
  service_.record_report(1, backup(1));
  service_.record_report(0, wants_pair(1));
  expect_view(2, 0, true);
}

TEST_F(ViewServiceTest, APairedPrimaryThatIsLostIsReplaced) {
  begin_paired();
  service_.lose(0);
  expect_view(3, 1, false);
}

TEST_F(ViewServiceTest, ALonePrimaryThatIsLostIsWaitedFor) {
  begin();
  service_.lose(0);
  expect_view(1, 0, false);
  service_.record_report(0, primary(1));
  expect_view(1, 0, false);
}

TEST_F(ViewServiceTest, ABackupThatHasNotHeardOfThePairIsAskedFirst) {
  begin();
  service_.record_report(1, backup(1));
  service_.record_report(0, wants_pair(1));
  service_.lose(0);
  expect_view(2, 0, true);  // host 1 may have been restarted
  service_.record_report(1, backup(2));
  expect_view(3, 1, false);
}

TEST_F(ViewServiceTest, ABackupThatWasLostWithItsPrimaryIsNotPromoted) {
  begin_paired();
  service_.lose(1);
  service_.record_report(1, kNew);
  service_.lose(0);
  expect_view(2, 0, true);
  service_.record_report(0, kNew);
  expect_view(3, 0, false);
}

TEST_F(ViewServiceTest, APrimaryMayGoOnAloneOnceItHasAsked) {
  begin_paired();
  service_.lose(1);
  expect_view(2, 0, true);
  service_.record_report(0, wants_alone(2));
  expect_view(3, 0, false);
}

TEST_F(ViewServiceTest, ABackupIsNeverPromotedAfterItsPrimaryWentOnAlone) {
  begin_paired();
  service_.record_report(0, wants_alone(2));
  service_.lose(0);
  service_.record_report(1, backup(2));
  service_.record_report(1, backup(3));
  expect_view(3, 0, false);
}

TEST_F(ViewServiceTest, APrimaryThatWasReplacedAsksInVain) {
  begin_paired();
  service_.lose(0);
  service_.record_report(1, primary(3));
  service_.record_report(0, wants_alone(2));
  expect_view(3, 1, false);
}

TEST_F(ViewServiceTest, AnOldWishIsNotGrantedInANewView) {
  begin_paired();
  service_.record_report(0, wants_alone(2));
  service_.record_report(0, wants_alone(2));  // sent before it received the new view
  expect_view(3, 0, false);
}

TEST_F(ViewServiceTest, ANewProcessInThePlaceOfAPairedPrimaryIsABackup) {
  begin_paired();
  service_.record_report(0, kNew);
  expect_view(3, 1, false);
}

TEST_F(ViewServiceTest, ANewProcessInThePlaceOfALonePrimaryBeginsAnew) {
  begin();
  service_.record_report(0, kNew);
  expect_view(2, 0, false);
  service_.record_report(0, primary(2, false));
  expect_view(2, 0, false);
}

TEST_F(ViewServiceTest, ANewChiefFindsTheViewThatHolds) {
  service_.record_report(1, backup(6));
  service_.record_report(0, primary(6));
  expect_view(6, 0, true);
  service_.lose(0);
  expect_view(7, 1, false);
}

TEST_F(ViewServiceTest, ANewChiefFindsThatThePrimaryIsAlone) {
  service_.record_report(0, backup(7, false));
  service_.record_report(1, primary(6));
  expect_view(8, 1, false);
  service_.lose(1);
  expect_view(8, 1, false);
}

TEST_F(ViewServiceTest, ANewChiefFindsThatOnlyTheBackupIsLeft) {
  service_.record_report(0, kNew);
  service_.record_report(1, backup(4));
  expect_view(5, 1, false);
}

TEST_F(ViewServiceTest, ANewChiefFindsThatThePairWasNotToldToThePrimary) {
  service_.record_report(0, wants_pair(1));
  service_.record_report(1, backup(2));
  expect_view(2, 0, true);
}

// The backup did not request anything more either; and the primary requests once.
TEST_F(ViewServiceTest, ANewChiefFindsThatThePairWasNotToldToTheBackup) {
  service_.record_report(1, in_view_of(kOlder, backup(1)));
  service_.record_report(0, in_view_of(kOlder, in_a_pair(primary(2))));
  expect_view(2, 0, true);
  service_.record_report(0, in_a_pair(primary(2)));
  service_.record_report(1, in_a_pair(backup(2)));
  service_.lose(0);
  expect_view(3, 1, false);
}

// The new chief continues the pair under its own number.
TEST_F(ViewServiceTest, ANewChiefFindsThatOneHostAloneHasHeardTheChiefBeforeIt) {
  for (const std::size_t told : {0U, 1U}) {
    service_ = ViewService(kChief);
    service_.record_report(0, in_view_of(told == 0 ? kOlder : kOldest, in_a_pair(primary(2))));
    service_.record_report(1, in_view_of(told == 1 ? kOlder : kOldest, in_a_pair(backup(2))));
    expect_view(2, 0, true);
  }
}

// The other host's copy may be of an earlier primary.
TEST_F(ViewServiceTest, ACopyOfAnOlderViewMakesNoPair) {
  service_.record_report(1, backup(1));
  service_.record_report(0, in_a_pair(primary(3)));
  expect_view(4, 0, false);
}

// The primary has not noticed yet, and makes its request then.
TEST_F(ViewServiceTest, ANewChiefFindsThatTheBackupOfAPairIsANewProcess) {
  service_.record_report(1, kNew);
  service_.record_report(0, in_a_pair(primary(3)));
  expect_view(3, 0, true);
  service_.record_report(1, backup(3, false));
  service_.lose(0);
  expect_view(3, 0, true);
  service_.record_report(0, wants_alone(3));
  expect_view(4, 0, false);
}

// The backup of view 2 was disconnected when its primary requested to continue alone.
TEST_F(ViewServiceTest, ANewChiefRemembersWhatAHostHasSaidThatIsLostSince) {
  service_.record_report(0, primary(3));
  service_.lose(0);
  service_.record_report(1, backup(2));
  EXPECT_FALSE(service_.view().has_value()) << "the primary may come back";
  service_.record_report(0, kNew);
  expect_view(4, 0, false);
  service_.record_report(0, primary(4, false));
  service_.record_report(1, backup(4, false));
  expect_view(4, 0, false);
}

TEST_F(ViewServiceTest, ThePrimaryThatANewChiefHasHeardOfMayComeBack) {
  service_.record_report(0, primary(3));
  service_.lose(0);
  service_.record_report(1, backup(2));
  service_.record_report(0, primary(3));
  expect_view(3, 0, false);
}

// The backup had not received the view of the pair.
TEST_F(ViewServiceTest, ANewChiefRemembersAPairOfWhichThePrimaryIsLostSince) {
  service_.record_report(0, in_a_pair(primary(3)));
  service_.lose(0);
  service_.record_report(1, backup(2));
  service_.record_report(0, kNew);
  expect_view(3, 0, true);
  service_.record_report(1, backup(3));
  expect_view(4, 1, false);
}

// The primary of view 3 holds nothing, since its state is being restored. The copy of view 2 is of
// the state before that.
TEST_F(ViewServiceTest, ACopyOfAnOlderViewIsNoStateOfTheNewestOne) {
  service_.record_report(1, backup(2));
  service_.lose(1);
  service_.record_report(0, in_a_pair(primary(3, false)));
  service_.lose(0);
  service_.record_report(1, backup(2));
  service_.record_report(0, kNew);
  expect_view(3, 0, true);
  service_.record_report(1, backup(3));
  expect_view(3, 0, true);
}

TEST_F(ViewServiceTest, ANewChiefFindsNothing) {
  service_.record_report(0, kNew);
  service_.record_report(1, backup(3, false));
  expect_view(4, 0, false);
}

TEST_F(ViewServiceTest, APrimaryThatATrainerOfTheBackupDoesNotReachIsReplaced) {
  begin_paired();
  service_.record_report(0, of_trainers(primary(2), {1}));
  expect_view(2, 0, true);  // it may be dead
  service_.record_report(1, of_trainers(backup(2), {2}));
  expect_view(2, 0, true);  // that is another trainer
  service_.record_report(1, of_trainers(backup(2), {1, 2}));
  expect_view(3, 1, false);
  EXPECT_EQ(service_.left(), 0);
}

TEST_F(ViewServiceTest, ACopyThatIsNotAcknowledgedIsNoPlaceToGoTo) {
  begin();
  service_.record_report(0, of_trainers(primary(1), {1}));
  service_.record_report(1, of_trainers(backup(1), {1}));
  expect_view(1, 0, false);
  service_.record_report(1, of_trainers(backup(1, false), {1}));
  expect_view(1, 0, false);
}

// Then no view helps, and the run ends by its own timeouts.
TEST_F(ViewServiceTest, WhereEachHostIsUnreachableForATrainerTheViewStays) {
  begin_paired();
  move_to_1_for_trainer_1();
  service_.record_report(0, of_trainers(backup(4), {2}));
  service_.record_report(1, of_trainers(primary(4), {2}));
  expect_view(4, 1, true);
}

TEST_F(ViewServiceTest, AHostThatHasBeenThePrimarySinceMayBeGoneToAgain) {
  begin_paired();
  move_to_1_for_trainer_1();
  service_.lose(1);
  expect_view(5, 0, false);
  EXPECT_EQ(service_.left(), std::nullopt);
  service_.record_report(0, wants_pair(5));
  service_.record_report(1, backup(5));
  service_.record_report(0, primary(6));
  service_.record_report(1, backup(6));
  expect_view(6, 0, true);
  service_.record_report(0, of_trainers(primary(6), {1}));
  service_.record_report(1, of_trainers(backup(6), {1}));
  expect_view(7, 1, false);
}

TEST_F(ViewServiceTest, AfterTheEndNothingIsDecided) {
  begin_paired();
  Report finished = primary(2);
  finished.finished = true;
  service_.record_report(0, finished);
  service_.lose(0);
  expect_view(2, 0, true);
}

// The process that reported the end is lost together with its record of the end. The process that
// replaces it receives its role, as the run may have to be ended there again.
TEST_F(ViewServiceTest, AProcessThatBeginsAfterTheEndIsToldWhoItIs) {
  Report finished = primary(1);
  finished.finished = true;
  service_.record_report(0, finished);
  service_.record_report(1, backup(1, false));
  EXPECT_FALSE(service_.view());
  service_.lose(0);
  EXPECT_FALSE(service_.view());
  service_.record_report(0, kNew);
  ASSERT_TRUE(service_.view());
  EXPECT_EQ(service_.view()->primary, 0);
}

// The number is the chief's own, and overrules any later view of its predecessor.
TEST_F(ViewServiceTest, AViewOfTheChiefBeforeItIsGoneOnWith) {
  service_.record_report(0, in_view_of(kOlder, primary(4)));
  service_.record_report(1, in_view_of(kOlder, backup(4)));
  expect_view(4, 0, true);
  service_.lose(0);
  expect_view(4, 0, true);  // host 1 may have been restarted
  service_.record_report(1, backup(4));
  expect_view(5, 1, false);
}

TEST_F(ViewServiceTest, WhatIsWishedForInTheViewOfTheChiefBeforeItIsGrantedAtOnce) {
  service_.record_report(1, in_view_of(kOlder, backup(4)));
  service_.record_report(0, in_view_of(kOlder, wants_pair(4)));
  expect_view(5, 0, true);
}

// The earlier chief was about to let the primary continue alone. That process is lost, and the
// process that replaces it received the view before this chief had reached it.
TEST_F(ViewServiceTest, WhatTheChiefBeforeItTellsANewProcessCostsNoState) {
  for (const Report& report : {backup(5, false), primary(5, false), in_a_pair(primary(4, false))}) {
    service_ = ViewService(kChief);
    service_.record_report(0, in_view_of(kOlder, primary(4)));
    service_.record_report(1, in_view_of(kOlder, backup(4)));
    service_.lose(0);
    service_.record_report(0, in_view_of(kOlder, report));
    expect_view(4, 0, true);  // host 1 has not received that view yet
    service_.record_report(1, backup(4));
    // The next view makes host 1 the primary, which continues with its copy.
    expect_view(5, 1, false);
  }
}

TEST_F(ViewServiceTest, APrimaryWhoseStateIsSetAnewIsNoNewProcess) {
  begin_paired();
  service_.record_report(0, primary(2, false));
  expect_view(2, 0, true);
}

// Not even with the same count or a higher one: this chief sends its own view to the hosts that
// have such a view.
TEST_F(ViewServiceTest, AViewOfTheChiefBeforeItDoesNotCountAgainstItsOwn) {
  begin();
  service_.record_report(1, in_view_of(kOlder, primary(9)));
  expect_view(1, 0, false);
}

TEST_F(ViewServiceTest, OneThatHearsOfANewerChiefDecidesNothingMore) {
  begin_paired();
  EXPECT_EQ(service_.replaced_by(), 0U);
  service_.record_report(1, in_view_of(kNewer, backup(3)));
  service_.lose(0);
  EXPECT_EQ(service_.replaced_by(), kNewer);
  EXPECT_FALSE(service_.view().has_value());
}

}  // namespace
}  // namespace disttf::roles
