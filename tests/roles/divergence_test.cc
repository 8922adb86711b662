#include "roles/trainer/core/divergence.h"

#include <gtest/gtest.h>

#include <limits>

namespace disttf::roles {
namespace {

constexpr double kGuessing = 2.302585;  // one of ten
constexpr std::size_t kRows = 5000;

// `accuracy` of 5000 images right.
Learning judged(double cross_entropy, double accuracy) {
  return judge({.loss = cross_entropy,
                .correct = static_cast<std::size_t>(accuracy * static_cast<double>(kRows)),
                .rows = kRows},
               kGuessing);
}

TEST(Divergence, IsALossThatIsNoNumber) {
  EXPECT_EQ(judged(std::numeric_limits<double>::quiet_NaN(), 0.1), Learning::kDiverged);
  EXPECT_EQ(judged(std::numeric_limits<double>::quiet_NaN(), 0.9), Learning::kDiverged);
  EXPECT_EQ(judged(std::numeric_limits<double>::infinity(), 0.9), Learning::kDiverged);
}

// What is left when every hidden unit is silent, at a rate of 1e6.
TEST(Divergence, IsAFiniteLossFarAboveGuessing) {
  EXPECT_EQ(judged(857, 0.1), Learning::kDiverged);
  EXPECT_EQ(judged(24, 0.1), Learning::kDiverged);
  EXPECT_EQ(judged(227, 0.1554), Learning::kDiverged);
}

// A perceptron is as sure of what it gets wrong as of what it gets right.
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
