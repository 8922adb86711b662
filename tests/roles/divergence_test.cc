#include "roles/trainer/core/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace disttf::roles {
namespace {

constexpr double kGuessing = 2.302585;  // of ten classes
constexpr std::size_t kRows = 5000;

// `accuracy`: the share of 5000 images that are right.
Learning judged(double cross_entropy, double accuracy, double weights = 0.1,
                std::size_t classes = 10) {
  return judge({.loss = cross_entropy,
                .correct = static_cast<std::size_t>(accuracy * static_cast<double>(kRows)),
                .rows = kRows,
                .classes = classes},
               kGuessing, weights);
}

TEST(Divergence, IsALossThatIsNoNumber) {
  EXPECT_EQ(judged(std::numeric_limits<double>::quiet_NaN(), 0.1), Learning::kDiverged);
  EXPECT_EQ(judged(std::numeric_limits<double>::quiet_NaN(), 0.9), Learning::kDiverged);
  EXPECT_EQ(judged(std::numeric_limits<double>::infinity(), 0.9), Learning::kDiverged);
}

// All hidden units are dead, at a rate of 1e6.
TEST(Divergence, IsAFiniteLossFarAboveGuessing) {
  EXPECT_EQ(judged(857, 0.1), Learning::kDiverged);
  EXPECT_EQ(judged(24, 0.1), Learning::kDiverged);
  EXPECT_EQ(judged(227, 0.1554), Learning::kDiverged);
}

// The biases of the last layer have recovered. The numbers are from real runs.
TEST(Divergence, IsALossOfGuessingWithHugeWeights) {
  EXPECT_EQ(judged(2.24125, 0.1277, 237), Learning::kDiverged) << "adam at rate 50";
  EXPECT_EQ(judged(2.12, 0.1558, 237), Learning::kDiverged) << "adam at rate 50";
  EXPECT_EQ(judged(2.30635, 0.0982, 2e7), Learning::kDiverged) << "sgd at rate 1000";
  EXPECT_EQ(judged(2.30189, 0.1135, 54.6), Learning::kDiverged) << "sgd at rate 20";
  EXPECT_EQ(judged(0.3, 0.9, 237), Learning::kLearned) << "it came back";
  EXPECT_EQ(judged(1.2, 0.45, 237), Learning::kLearned) << "it has learned something";
  EXPECT_EQ(judged(2.3, 0, 237, 0), Learning::kNothing) << "labels that are numbers have any size";
}

TEST(Divergence, ALittleBetterThanGuessingWithLargeWeightsIsNothing) {
  EXPECT_EQ(judged(2.13, 0.21, 4.8), Learning::kNothing) << "adam at rate 1";
  EXPECT_EQ(judged(2.13, 0.21, 0.2), Learning::kLearned) << "it has just begun";
}

TEST(Divergence, IsAWeightThatIsNotFinite) {
  EXPECT_EQ(judged(2.3, 0.1, std::numeric_limits<double>::quiet_NaN()), Learning::kDiverged);
  EXPECT_EQ(judged(0.1, 0.99, std::numeric_limits<double>::infinity()), Learning::kDiverged);
}

TEST(Divergence, OfTwoClassesIsJudgedWhereHalfAreRight) {
  EXPECT_EQ(judged(857, 0.5, 300, 2), Learning::kDiverged);
  EXPECT_EQ(judged(30, 0.7, 300, 2), Learning::kLearned);
}

TEST(Divergence, MeasuresTrainedParametersAlone) {
  math::ParameterLayout layout;
  layout.add("w", {2});
  layout.add("mean", {1}, false, 0.9F);
  std::vector<float> parameters(layout.size());
  parameters[layout.variables()[0].offset] = 6;
  parameters[layout.variables()[0].offset + 1] = 8;
  EXPECT_DOUBLE_EQ(root_mean_square(layout, parameters), std::sqrt(50.0));
  parameters[layout.variables()[1].offset] = 1e6F;
  EXPECT_DOUBLE_EQ(root_mean_square(layout, parameters), std::sqrt(50.0));
  parameters[layout.variables()[0].offset] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(root_mean_square(layout, parameters)));
}

// A perceptron is as confident in its errors as in its right answers.
TEST(Divergence, IsNotALargeLossOfAModelThatIsMostlyRight) {
  EXPECT_EQ(judged(30276, 0.9158), Learning::kLearned);
}

TEST(Divergence, IsNotAModelThatHasHardlyBegun) {
  EXPECT_EQ(judged(2.35, 0.09), Learning::kNothing) << "before the first step";
  EXPECT_EQ(judged(14.7, 0.15), Learning::kNothing) << "after one step of adam at rate 0.1";
  EXPECT_EQ(judged(2.3010, 0.1135), Learning::kNothing) << "one answer for every image of MNIST";
  EXPECT_EQ(judged(2.13, 0.17), Learning::kLearned);
}

}  // namespace
}  // namespace disttf::roles
