// What an evaluator decides: which step it asks the ps for, and which model is the best.
#include <gtest/gtest.h>

#include <cmath>

#include "roles/evaluator/core/best_metric.h"
#include "roles/evaluator/core/cut_plan.h"

namespace disttf::roles {
namespace {

using State = CutPlan::State;

TEST(CutPlan, AsksForAStepThatNobodyHasMade) {
  CutPlan plan(2);
  plan.saw(40);
  plan.saw(41);
  EXPECT_GT(plan.begin(), 41U);
}

TEST(CutPlan, PartsOfOneStepAreACut) {
  CutPlan plan(2);
  const std::uint64_t step = plan.begin();
  plan.took(1, {.step = step, .generation = 1});
  EXPECT_EQ(plan.state(), State::kIncomplete);
  plan.took(0, {.step = step, .generation = 1});
  EXPECT_EQ(plan.state(), State::kWhole);
  EXPECT_EQ(plan.step(), step);
}

TEST(CutPlan, PartsOfTwoStepsOrTwoStatesAreNone) {
  CutPlan plan(2);
  plan.took(0, {.step = 5, .generation = 1});
  plan.took(1, {.step = 6, .generation = 1});
  EXPECT_EQ(plan.state(), State::kTorn);
  plan.took(0, {.step = 6, .generation = 2});
  EXPECT_EQ(plan.state(), State::kTorn);
}

// One step after the other is made between the two questions: the distance that suffices is found.
TEST(CutPlan, LearnsHowFarAheadToAsk) {
  constexpr std::uint64_t kBetween = 100;
  CutPlan plan(2);
  std::uint64_t now = 0;
  int tries = 0;
  do {
    const std::uint64_t wanted = plan.begin();
    plan.took(0, {.step = std::max(wanted, now), .generation = 1});
    now += kBetween;
    plan.took(1, {.step = std::max(wanted, now), .generation = 1});
    now = std::max(wanted, now);
  } while (plan.state() != State::kWhole && ++tries < 20);
  EXPECT_EQ(plan.state(), State::kWhole);
  EXPECT_LE(tries, 10);
}

TEST(CutPlan, TheResultNeedsThePartsOfAll) {
  CutPlan plan(2);
  plan.took(0, {.step = 7, .generation = 1});
  plan.took(1, {.step = 9, .generation = 1, .is_last = true});
  EXPECT_EQ(plan.state(), State::kIncomplete);
  static_cast<void>(plan.begin());
  plan.lost();  // the one that has given its part away is gone
  plan.took(0, {.step = 9, .generation = 1, .is_last = true});
  EXPECT_EQ(plan.state(), State::kResult);
  EXPECT_EQ(plan.step(), 9U);
}

TEST(CutPlan, OfPsThatWereLostNothingIsLeft) {
  CutPlan plan(2);
  plan.saw(50);
  plan.took(0, {.step = 51, .generation = 1});
  plan.lost();
  plan.took(1, {.step = 51, .generation = 1});
  EXPECT_EQ(plan.state(), State::kIncomplete);
}

TEST(BestMetric, EachHasItsName) {
  for (const std::string_view name : kBestMetricNames) {
    const auto metric = best_metric_from_name(name);
    ASSERT_TRUE(metric.has_value());
    EXPECT_EQ(best_metric_name(*metric), name);
  }
  EXPECT_FALSE(best_metric_from_name("f1").has_value());
  EXPECT_FALSE(best_metric_from_name("").has_value());
}

TEST(BestMetric, MoreAccuracyAndLessOfTheOthersIsBetter) {
  EXPECT_TRUE(is_better(BestMetric::kAccuracy, 0.9, 0.8));
  EXPECT_FALSE(is_better(BestMetric::kAccuracy, 0.8, 0.8));
  for (const BestMetric metric :
       {BestMetric::kLoss, BestMetric::kAbsoluteError, BestMetric::kSquaredError}) {
    EXPECT_TRUE(is_better(metric, 0.8, 0.9));
    EXPECT_FALSE(is_better(metric, 0.9, 0.9));
  }
}

TEST(BestMetric, WhatIsNoNumberIsBeatenByAny) {
  EXPECT_TRUE(is_better(BestMetric::kLoss, 3, NAN));
  EXPECT_FALSE(is_better(BestMetric::kLoss, NAN, 3));
  EXPECT_FALSE(is_better(BestMetric::kLoss, NAN, NAN));
}

TEST(BestMetric, IsOfClassesOrOfNumbers) {
  math::Evaluation of_classes;
  of_classes.classes = 10;
  const math::Evaluation of_numbers;
  EXPECT_FALSE(lacks_metric(BestMetric::kLoss, of_classes));
  EXPECT_FALSE(lacks_metric(BestMetric::kLoss, of_numbers));
  EXPECT_FALSE(lacks_metric(BestMetric::kAccuracy, of_classes));
  EXPECT_EQ(
      lacks_metric(BestMetric::kAccuracy, of_numbers),
      "--keep_best: \"accuracy\" is of classes, and the labels of this run are numbers: loss, "
      "absolute_error or squared_error");
  EXPECT_EQ(lacks_metric(BestMetric::kSquaredError, of_classes),
            "--keep_best: \"squared_error\" is of labels that are numbers, and those of this run "
            "are classes: accuracy or loss");
}

}  // namespace
}  // namespace disttf::roles
