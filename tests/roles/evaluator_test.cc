// How an evaluator chooses the best model.
#include <gtest/gtest.h>

#include <cmath>

#include "roles/evaluator/best_metric.h"

namespace disttf::roles {
namespace {

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
