// How the chief ends a run, in virtual time.
#include "roles/chief/core/run_leader.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "roles/chief/core/early_stop.h"
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

// When early stopping ends a run.

math::Evaluation evaluation(double loss, std::size_t correct = 0) {
  return {.loss = loss, .correct = correct, .rows = 5000, .classes = 10};
}

constexpr EarlyStop::Rule kTarget{.train_steps = 1000, .eval_every = 100, .target_accuracy = 0.99F};
constexpr EarlyStop::Rule kPatient{.train_steps = 1000, .eval_every = 100, .patience = 2};

// `losses`: of steps 100, 200, ... Returns the step at which the run stops, or 0.
std::uint64_t stop_of(EarlyStop& early_stop, const std::vector<double>& losses) {
  std::uint64_t step = 0;
  for (const double loss : losses) {
    step += 100;
    EXPECT_TRUE(early_stop.is_due(step));
    early_stop.evaluated(step, evaluation(loss));
    if (early_stop.stops_at(step)) {
      return step;
    }
  }
  return 0;
}

TEST(EarlyStopTest, EvaluatesEveryMultipleOnTheWay) {
  EarlyStop early_stop({.train_steps = 250, .eval_every = 100});
  EXPECT_FALSE(early_stop.is_due(0));
  EXPECT_FALSE(early_stop.is_due(99));
  ASSERT_TRUE(early_stop.is_due(100));
  early_stop.evaluated(100, evaluation(1));
  EXPECT_FALSE(early_stop.is_due(100));
  EXPECT_FALSE(early_stop.stops_at(100)) << "nothing says so";
  ASSERT_TRUE(early_stop.is_due(203)) << "async: 200 was not seen";
  early_stop.evaluated(203, evaluation(1));
  EXPECT_FALSE(early_stop.is_due(250)) << "the end has an evaluation of its own";
  EXPECT_FALSE(EarlyStop({.train_steps = 9}).is_due(5));
}

TEST(EarlyStopTest, AProcessThatBeginsAtAMultipleEvaluatesItWhereSomethingHangsOnThat) {
  EXPECT_TRUE(EarlyStop(kTarget).is_due(300));
  EXPECT_TRUE(EarlyStop(kPatient).is_due(300));
  EXPECT_FALSE(EarlyStop({.train_steps = 1000, .eval_every = 100}).is_due(300));
  EXPECT_FALSE(EarlyStop(kTarget).is_due(0));
}

// 0.99 of 5000 is 4950: the decimal number counts, and not the nearest float.
TEST(EarlyStopTest, StopsWhereTheTargetIsReached) {
  EarlyStop early_stop(kTarget);
  static_cast<void>(early_stop.is_due(100));
  early_stop.evaluated(100, evaluation(0.1, 4949));
  EXPECT_FALSE(early_stop.stops_at(100));
  early_stop.evaluated(200, evaluation(0.2, 4950));
  EXPECT_TRUE(early_stop.stops_at(200));
  EXPECT_EQ(early_stop.why(),
            "Stopped at step 200: the validation accuracy 0.9900 reached --target_accuracy 0.99");
  EXPECT_FALSE(early_stop.stops_at(150)) << "set back, it comes to 200 again";
  EXPECT_FALSE(early_stop.keeps_best());
}

TEST(EarlyStopTest, StopsWhereTheLossHasNotGotBetterForSoLong) {
  EarlyStop early_stop(kPatient);
  EXPECT_EQ(stop_of(early_stop, {0.5, 0.4, 0.45, 0.39, 0.39, 0.41, 0.1}), 600U);
  EXPECT_EQ(early_stop.why(),
            "Stopped at step 600: the validation loss has not fallen below the 0.39 of "
            "step 400 in 2 evaluation(s), as --patience says");
  EXPECT_EQ(early_stop.best(), (BestEvaluation{.step = 400, .loss = 0.39}));
}

TEST(EarlyStopTest, ALossThatIsNoNumberIsNotBetter) {
  constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
  EarlyStop early_stop(kPatient);
  EXPECT_EQ(stop_of(early_stop, {kNotANumber, kNotANumber, 0.1}), 200U);
  EXPECT_THAT(early_stop.why(), testing::HasSubstr("has not been a number in 2 evaluation(s)"));
  EarlyStop other(kPatient);
  EXPECT_EQ(stop_of(other, {0.5, kNotANumber, kNotANumber}), 300U);
}

TEST(EarlyStopTest, TheNextChiefStopsAtTheSameStep) {
  const std::vector<double> losses = {0.5, 0.4, 0.45, 0.39, 0.39, 0.41, 0.1};
  EarlyStop first(kPatient);
  for (std::uint64_t begins = 1; begins <= 6; ++begins) {  // each leads for one evaluation
    EarlyStop early_stop(kPatient);
    early_stop.learn(first.best());
    const std::uint64_t step = begins * 100;
    ASSERT_TRUE(early_stop.is_due(step));
    early_stop.evaluated(step, evaluation(losses[begins - 1]));
    EXPECT_EQ(early_stop.stops_at(step), step == 600) << step;
    first = EarlyStop(kPatient);
    first.learn(early_stop.best());
  }
}

// A run was rolled back, and its best evaluation lies ahead of it again.
TEST(EarlyStopTest, WhatIsKnownOfLaterStepsChangesNothing) {
  EarlyStop early_stop(kPatient);
  early_stop.learn({.step = 400, .loss = 0.39});
  EXPECT_EQ(stop_of(early_stop, {0.5, 0.4, 0.45, 0.39, 0.39, 0.41, 0.1}), 600U);
  EXPECT_EQ(early_stop.best().step, 400U);
}

TEST(EarlyStopTest, ACheckpointSaysWhatThePsHaveToldAndWhetherItIsTheResult) {
  EarlyStop early_stop(kPatient);
  const BestEvaluation told{.step = 200, .loss = 0.4};
  EXPECT_EQ(early_stop.saved_with(told, std::nullopt), (EarlyStopState{.best = told}));
  EXPECT_EQ(early_stop.saved_with({}, 400), (EarlyStopState{.best = told, .step = 400}));
  EXPECT_EQ(early_stop.saved_with({}, kPatient.train_steps), (EarlyStopState{.best = told}))
      << "a stop at the last step is not early";
  EarlyStop without({.train_steps = 1000, .eval_every = 100});
  EXPECT_EQ(without.saved_with({}, 400), EarlyStopState{});
}

TEST(EarlyStopTest, NothingIsSavedBeforeThePsHaveToldTheBestEvaluation) {
  EXPECT_FALSE(EarlyStop(kPatient).may_save(/*has_joined=*/false));
  EXPECT_TRUE(EarlyStop(kPatient).may_save(/*has_joined=*/true));
  EXPECT_TRUE(EarlyStop(kTarget).may_save(/*has_joined=*/false));
}

TEST(EarlyStopTest, TheNewerOfTwoIsTheBest) {
  BestEvaluation best{.step = 200, .loss = 0.4};
  best.learn({.step = 100, .loss = 0.5});
  EXPECT_EQ(best.step, 200U);
  best.learn({.step = 300, .loss = 0.3});
  EXPECT_EQ(best, (BestEvaluation{.step = 300, .loss = 0.3}));
  best.learn({});
  EXPECT_EQ(best.step, 300U);
}

}  // namespace
}  // namespace disttf::roles
