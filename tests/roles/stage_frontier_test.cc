#include "roles/monitor/core/stage_frontier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace disttf::roles {
namespace {

using testing::DoubleNear;
using testing::Eq;

constexpr double kExact = 1e-6;

TrainerSample sample(std::uint64_t step, float pull, float load, float forward, float backward,
                     float push, float overlapped = 0) {
  return {.step = step, .seconds = {pull, load, forward, backward, push, 0, overlapped}};
}

// Gradients that arrive when they are sent.
RangeSample prompt(std::uint64_t step, std::vector<float> arrived, float apply = 0.001F) {
  return {.step = step, .apply = apply, .arrived = std::move(arrived)};
}

double sum_of(const Frontier& frontier) {
  return std::accumulate(frontier.shares.begin(), frontier.shares.end(), 0.0,
                         [](double sum, const auto& share) { return sum + share.seconds; });
}

TEST(StageFrontier, KnowsNothingBeforeAllHaveTold) {
  StageFrontier frontier(2, 1, true);
  EXPECT_EQ(frontier.take(), std::nullopt);
  frontier.trainer_told(0, std::vector{sample(0, 0, 0, 0.01F, 0.02F, 0)});
  EXPECT_EQ(frontier.take(), std::nullopt) << "the ps has not";
}

TEST(StageFrontier, SharesAddUpToTheStep) {
  StageFrontier frontier(2, 1, true);
  // Rank 0 is ahead up to the loss, rank 1 behind it.
  frontier.trainer_told(0, std::vector{sample(8, 0, 0, 0.010F, 0.010F, 0)});
  frontier.trainer_told(1, std::vector{sample(8, 0, 0, 0.004F, 0.026F, 0)});
  frontier.ps_told(0, std::vector{prompt(8, {0.020F, 0.030F}, 0.002F)});
  const auto found = frontier.take();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 8U);
  EXPECT_EQ(found->steps, 1U);
  EXPECT_THAT(found->step_seconds, DoubleNear(0.032, kExact));
  EXPECT_THAT(sum_of(*found), DoubleNear(found->step_seconds, kExact));
  ASSERT_EQ(found->shares.size(), 3U);
  EXPECT_EQ(found->shares[0].stage, FrontierStage::kBackward);
  EXPECT_EQ(found->shares[0].index, 1U);
  EXPECT_THAT(found->shares[0].seconds, DoubleNear(0.020, kExact));
  EXPECT_EQ(found->shares[1].stage, FrontierStage::kForward);
  EXPECT_EQ(found->shares[1].index, 0U);
  EXPECT_EQ(found->shares[2].stage, FrontierStage::kApply);
  EXPECT_TRUE(found->shares[2].is_ps);
}

TEST(StageFrontier, NamesWhoIsSlowAndByWhat) {
  StageFrontier frontier(3, 1, true);
  for (std::uint64_t step = 0; step < 10; ++step) {
    frontier.trainer_told(0, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    frontier.trainer_told(1, std::vector{sample(step, 0, 0, 0.01F, 0.018F, 0)});
    frontier.trainer_told(2, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    frontier.ps_told(0, std::vector{prompt(step, {0.02F, 0.028F, 0.02F})});
  }
  const auto found = frontier.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_FALSE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, FrontierStage::kBackward);
  EXPECT_THAT(found->slowest->slower, DoubleNear(0.4, 1e-4));
  EXPECT_EQ(found->steps, 10U);
}

TEST(StageFrontier, NamesNobodyWhereAllAreAlike) {
  StageFrontier frontier(2, 1, true);
  frontier.trainer_told(0, std::vector{sample(0, 0, 0, 0.0100F, 0.01F, 0)});
  frontier.trainer_told(1, std::vector{sample(0, 0, 0, 0.0105F, 0.01F, 0)});
  frontier.ps_told(0, std::vector{prompt(0, {0.02F, 0.0205F})});
  const auto found = frontier.take();
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->slowest);
}

// What a trainer cannot see: the kernel has the gradient, and the link is slow.
TEST(StageFrontier, WhatTheTrainerDidNotSeeIsItsPush) {
  StageFrontier frontier(2, 1, true);
  frontier.trainer_told(0, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  frontier.trainer_told(1, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  frontier.ps_told(0, std::vector{prompt(0, {0.021F, 0.071F})});
  const auto found = frontier.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, FrontierStage::kPush);
  EXPECT_THAT(found->slowest->seconds, DoubleNear(0.05, kExact));
}

// The next batch is loaded while the others are waited for: it is late where that takes longer.
TEST(StageFrontier, LoadingThatOutlastsTheWaitIsLoading) {
  StageFrontier frontier(2, 1, true);
  frontier.trainer_told(0, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0, 0.002F)});
  frontier.trainer_told(1, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0, 0.040F)});
  frontier.ps_told(0, std::vector{prompt(0, {0.02F, 0.05F})});
  const auto found = frontier.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, FrontierStage::kLoad);
}

TEST(StageFrontier, WhatAllTrainersShareIsThePs) {
  StageFrontier frontier(2, 2, true);
  frontier.trainer_told(0, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  frontier.trainer_told(1, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  frontier.ps_told(0, std::vector{prompt(0, {0.0201F, 0.0202F})});
  frontier.ps_told(1, std::vector{prompt(0, {0.0501F, 0.0502F})});
  const auto found = frontier.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_TRUE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, FrontierStage::kReceive);
}

TEST(StageFrontier, OnePsIsHeldAgainstItself) {
  StageFrontier frontier(1, 1, true);
  const auto told = [&frontier](std::uint64_t step, float apply) {
    frontier.trainer_told(0, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    frontier.ps_told(0, std::vector{prompt(step, {0.02F}, apply)});
  };
  told(0, 0.001F);
  EXPECT_FALSE(frontier.take()->slowest);
  for (std::uint64_t step = 1; step < 100; ++step) {
    told(step, 0.02F);
  }
  const auto found = frontier.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_TRUE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->stage, FrontierStage::kApply);
}

TEST(StageFrontier, WhoHasLeftIsNotWaitedFor) {
  StageFrontier frontier(2, 1, true);
  frontier.trainer_told(0, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  frontier.trainer_told(1, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  frontier.ps_told(0, std::vector{prompt(0, {0.02F, 0.02F})});
  ASSERT_TRUE(frontier.take());
  for (std::uint64_t step = 1; step < 6; ++step) {
    frontier.trainer_told(0, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    frontier.ps_told(0, std::vector{prompt(step, {0.02F, -1.0F})});
    static_cast<void>(frontier.take());
  }
  EXPECT_THAT(frontier.take()->step, Eq(5U));
}

TEST(StageFrontier, StepsThatAreMadeAgainTakeThePlaceOfTheFirst) {
  StageFrontier frontier(1, 1, true);
  frontier.trainer_told(0, std::vector{sample(7, 0, 0, 0.5F, 0, 0), sample(8, 0, 0, 0.5F, 0, 0)});
  frontier.trainer_told(0, std::vector{sample(7, 0, 0, 0.01F, 0, 0)});
  frontier.ps_told(0, std::vector{prompt(7, {0.01F}), prompt(8, {0.5F})});
  const auto found = frontier.take();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 7U);
  EXPECT_THAT(found->step_seconds, DoubleNear(0.011, kExact));
}

TEST(StageFrontier, WithoutACommonStepMeansAreCompared) {
  StageFrontier frontier(3, 1, false);
  frontier.trainer_told(0, std::vector{sample(10, 0, 0, 0.01F, 0.01F, 0)});
  frontier.trainer_told(1, std::vector{sample(11, 0, 0, 0.05F, 0.01F, 0)});
  frontier.trainer_told(2, std::vector{sample(12, 0, 0, 0.01F, 0.01F, 0)});
  const auto found = frontier.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, FrontierStage::kForward);
}

TEST(StepSamples, TasksThatChooseAloneMeet) {
  StepSamples<TrainerSample> fast;
  StepSamples<TrainerSample> slow;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    if (fast.wants(step)) {
      fast.add({.step = step});
    }
    if (step % 3 == 0 && slow.wants(step)) {  // told more seldom of each
      slow.add({.step = step});
    }
  }
  const auto of_fast = fast.take();
  EXPECT_LE(of_fast.size(), StepSampling::kMost);
  EXPECT_GE(of_fast.size(), StepSampling::kMost / 4);
  for (const TrainerSample& each : slow.take()) {
    if (each.step % 16 == 0) {
      EXPECT_THAT(of_fast, testing::Contains(testing::Field(&TrainerSample::step, each.step)));
    }
  }
}

TEST(StepSamples, ASlowRunIsMeasuredAtEachStepAgain) {
  StepSamples<TrainerSample> samples;
  for (std::uint64_t step = 0; step < 500; ++step) {
    if (samples.wants(step)) {
      samples.add({.step = step});
    }
  }
  for (int second = 0; second < 5; ++second) {
    static_cast<void>(samples.take());
  }
  EXPECT_TRUE(samples.wants(501));
}

TEST(StepSamples, TheSameStepAgainAndAgainIsBounded) {
  StepSamples<TrainerSample> samples;
  for (int time = 0; time < 1000; ++time) {
    samples.add({.step = 0});
  }
  EXPECT_LE(samples.take().size(), StepSampling::kMost);
}

}  // namespace
}  // namespace disttf::roles
