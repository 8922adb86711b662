// When early stopping ends a run.
#include "roles/chief/core/early_stop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace disttf::roles {
namespace {

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
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  EarlyStop early_stop(kPatient);
  EXPECT_EQ(stop_of(early_stop, {kNone, kNone, 0.1}), 200U);
  EXPECT_THAT(early_stop.why(), testing::HasSubstr("has not been a number in 2 evaluation(s)"));
  EarlyStop other(kPatient);
  EXPECT_EQ(stop_of(other, {0.5, kNone, kNone}), 300U);
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
