// How the chief ends a run, in virtual time.
#include "roles/chief/core/run_leader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "run/outcome.h"

namespace disttf::roles {
namespace {

using LeaderAction = RunLeader::Action;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class RunLeaderTest : public testing::Test {
 protected:
  static constexpr RunLeader::TimePoint kNow{hours(1)};

  // Continues until the leader waits for the others.
  static void train(RunLeader& leader) {
    ASSERT_EQ(leader.next(), LeaderAction::kConnect);
    leader.connected(false);
    ASSERT_EQ(leader.next(), LeaderAction::kTrain);
    leader.trained();
    ASSERT_EQ(leader.next(), LeaderAction::kAwaitOthers);
  }
  static std::string notes_of(RunLeader& leader) {
    std::string text;
    leader.notes().drain([&text](const Note& note) { text += note.text + "\n"; });
    return text;
  }

  RunLeader saving_{{.saves = true}};
};

TEST_F(RunLeaderTest, TheOthersAreAwaitedBeforeTheResultIsSavedPrintedAndTold) {
  train(saving_);
  saving_.others_done(true, kNow);
  ASSERT_EQ(saving_.next(), LeaderAction::kSave);
  saving_.saved(true, kNow + seconds(1));
  ASSERT_EQ(saving_.next(), LeaderAction::kConclude);
  saving_.concluded();
  ASSERT_EQ(saving_.next(), LeaderAction::kAnnounceEnd);
  saving_.told(kNow + seconds(2));
  EXPECT_EQ(saving_.next(), LeaderAction::kEnd);
  EXPECT_FALSE(saving_.has_failed());
  EXPECT_FALSE(saving_.was_late());
}

TEST_F(RunLeaderTest, WithoutATrainDirNothingIsSaved) {
  RunLeader leader({});
  train(leader);
  leader.others_done(true, kNow);
  EXPECT_EQ(leader.next(), LeaderAction::kConclude);
}

TEST_F(RunLeaderTest, WhereOthersPushOnTheResultIsWhatThePsHoldWhenAllAreDone) {
  RunLeader leader({.every_gradient_counts = false});
  train(leader);
  leader.others_done(true, kNow);
  ASSERT_EQ(leader.next(), LeaderAction::kPeek);
  leader.peeked(true, kNow);
  EXPECT_EQ(leader.next(), LeaderAction::kConclude);
}

TEST_F(RunLeaderTest, TheViewsEndLast) {
  RunLeader leader({.replicated = true});
  train(leader);
  leader.others_done(true, kNow);
  leader.concluded();
  leader.told(kNow);
  ASSERT_EQ(leader.next(), LeaderAction::kEndViews);
  EXPECT_EQ(leader.deadline(), kNow + seconds(3));
  leader.ended();
  EXPECT_EQ(leader.next(), LeaderAction::kEnd);
}

TEST_F(RunLeaderTest, AStateThatIsAnEarlierOneIsTrainedOn) {
  train(saving_);
  EXPECT_TRUE(saving_.has_result()) << "the ps are set to it if one is lost";
  saving_.others_done(false, kNow);
  EXPECT_EQ(saving_.next(), LeaderAction::kTrain);
  EXPECT_FALSE(saving_.has_result()) << "it is another state's";
  EXPECT_THAT(notes_of(saving_),
              HasSubstr("another chief has rolled the ps back to an earlier state"));
}

TEST_F(RunLeaderTest, SoIsOneThatIsSeenAsLateAsWithTheLastLook) {
  RunLeader leader({.every_gradient_counts = false});
  train(leader);
  leader.others_done(true, kNow);
  leader.peeked(false, kNow);
  EXPECT_EQ(leader.next(), LeaderAction::kTrain);
  EXPECT_FALSE(leader.has_result());
}

TEST_F(RunLeaderTest, ASaveThatFailedIsTriedAgainOnceAllHoldTheResultAgain) {
  train(saving_);
  saving_.others_done(true, kNow);
  EXPECT_EQ(saving_.deadline(), kNow + seconds(60));
  saving_.saved(false, kNow + seconds(10));
  ASSERT_EQ(saving_.next(), LeaderAction::kPause);
  EXPECT_EQ(saving_.deadline(), kNow + seconds(10) + milliseconds(20));
  saving_.paused();
  ASSERT_EQ(saving_.next(), LeaderAction::kAwaitOthers);
  saving_.others_done(true, kNow + seconds(11));
  ASSERT_EQ(saving_.next(), LeaderAction::kSave);
  EXPECT_EQ(saving_.deadline(), kNow + seconds(60)) << "in all";
}

TEST_F(RunLeaderTest, ASaveThatFailsForLongIsGivenUp) {
  train(saving_);
  saving_.others_done(true, kNow);
  saving_.saved(false, kNow + seconds(60) - milliseconds(20));
  EXPECT_EQ(saving_.next(), LeaderAction::kConclude);
  EXPECT_THAT(notes_of(saving_), HasSubstr("no checkpoint of the last step was saved: for 60 s"));
}

TEST_F(RunLeaderTest, AResultThatIsMadeAgainHasItsOwnTimeToBeSaved) {
  train(saving_);
  saving_.others_done(true, kNow);
  saving_.saved(false, kNow + seconds(30));
  saving_.paused();
  saving_.others_done(false, kNow + seconds(31));
  saving_.trained();
  saving_.others_done(true, kNow + seconds(300));
  EXPECT_EQ(saving_.deadline(), kNow + seconds(360));
}

TEST_F(RunLeaderTest, AChiefThatComesAfterTheEndTellsItOn) {
  saving_.connected(true);
  EXPECT_EQ(saving_.next(), LeaderAction::kAnnounceEnd);
  EXPECT_TRUE(saving_.was_late());
}

TEST_F(RunLeaderTest, SoDoesOneThatLearnsOfTheEndOnTheWay) {
  train(saving_);
  saving_.run_over();
  EXPECT_EQ(saving_.next(), LeaderAction::kAnnounceEnd);
  EXPECT_TRUE(saving_.was_late());
}

TEST_F(RunLeaderTest, WhatThePsHoldIsSavedBeforeATaskThatMayComeBackLeaves) {
  for (const int code : {kInterrupted, kTerminated, kLostPeers}) {
    RunLeader leader({.saves = true});
    train(leader);
    leader.failed(code, kNow);
    ASSERT_EQ(leader.next(), LeaderAction::kSaveAndFail) << code;
    EXPECT_EQ(leader.deadline(), kNow + seconds(4));
    leader.ended();
    EXPECT_EQ(leader.next(), LeaderAction::kEnd);
    EXPECT_TRUE(leader.has_failed());
  }
}

TEST_F(RunLeaderTest, OneThatFailsForGoodOrHasNoPlaceForItJustLeaves) {
  train(saving_);
  saving_.failed(kError, kNow);
  EXPECT_EQ(saving_.next(), LeaderAction::kEnd);
  RunLeader leader({});
  train(leader);
  leader.failed(kTerminated, kNow);
  EXPECT_EQ(leader.next(), LeaderAction::kEnd);
}

TEST_F(RunLeaderTest, NothingIsSavedBeforeThereIsARunOrOnceItIsConcluded) {
  saving_.failed(kTerminated, kNow);
  EXPECT_EQ(saving_.next(), LeaderAction::kEnd);
  RunLeader leader({.saves = true});
  train(leader);
  leader.others_done(true, kNow);
  leader.saved(true, kNow);
  leader.failed(kTerminated, kNow);
  EXPECT_EQ(leader.next(), LeaderAction::kEnd);
}

TEST_F(RunLeaderTest, ASecondFailureEndsTheSaving) {
  train(saving_);
  saving_.failed(kTerminated, kNow);
  saving_.failed(kTerminated, kNow);
  EXPECT_EQ(saving_.next(), LeaderAction::kEnd);
}

}  // namespace
}  // namespace disttf::roles
