// What a trainer does next, and which part of a run's result it has in the end.
#include "roles/trainer/core/stepper.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace disttf::roles {
namespace {

using NextAction = Stepper::Action;
using StepBatch = Stepper::Batch;

// The share of a trainer as a ps sends it: every `stride`th micro-batch from `first` on.
constexpr net::StepShare share_of(std::uint32_t first, std::uint32_t stride) {
  return {.first = first, .stride = stride};
}

void make_step(Stepper& stepper, const StepResult& reply) {
  ASSERT_EQ(stepper.next(), NextAction::kCompute);
  stepper.computed();
  ASSERT_EQ(stepper.next(), NextAction::kPushPull);
  stepper.replied(reply);
}

// Computes and pushes until the step is awaited. Returns the micro-batches.
std::vector<std::size_t> work_of(Stepper& stepper) {
  std::vector<std::size_t> slots;
  while (stepper.next() == NextAction::kCompute) {
    slots.push_back(stepper.batch().slot);
    stepper.computed();
    EXPECT_EQ(stepper.next(), NextAction::kPush);
    stepper.pushed();
  }
  EXPECT_EQ(stepper.next(), NextAction::kAwaitStep);
  return slots;
}

TEST(StepperTest, ComputesItsBatchOfEachStepUntilTheLastIsMade) {
  Stepper stepper({.rank = 2});
  ASSERT_EQ(stepper.next(), NextAction::kPull);
  stepper.replied({.step = 5, .joined = true});
  EXPECT_EQ(stepper.batch(), (StepBatch{.step = 5, .slot = 2}));
  EXPECT_EQ(stepper.batch_after(), (StepBatch{.step = 6, .slot = 2}));
  EXPECT_EQ(stepper.sequence(), 1U);
  make_step(stepper, {.step = 6});
  EXPECT_EQ(stepper.batch(), (StepBatch{.step = 6, .slot = 2}));
  EXPECT_EQ(stepper.sequence(), 2U);
  make_step(stepper, {.step = 7, .finished = true});
  EXPECT_EQ(stepper.next(), NextAction::kLeave);
}

TEST(StepperTest, ARollbackIsTheNextStepToCompute) {
  Stepper stepper({});
  stepper.replied({.step = 5});
  make_step(stepper, {.step = 2, .joined = true});
  EXPECT_EQ(stepper.batch().step, 2U);
  EXPECT_EQ(stepper.sequence(), 2U) << "counts pushes, not steps of the run";
}

TEST(StepperTest, AsyncATrainerWalksItsOwnSlices) {
  Stepper stepper({.rank = 1, .sync_replicas = false, .fully_synchronous = false});
  stepper.replied({.step = 40});
  EXPECT_EQ(stepper.batch(), (StepBatch{.step = 0, .slot = 1}));
  make_step(stepper, {.step = 47});
  EXPECT_EQ(stepper.batch(), (StepBatch{.step = 1, .slot = 1}));
}

TEST(StepperTest, ElasticComputesItsShareAndThenWhatIsMissing) {
  Stepper stepper({.micro_batches = 6});
  stepper.replied({.step = 3, .share = share_of(1, 2)});
  EXPECT_EQ(stepper.batch().step, 3U);
  EXPECT_EQ(work_of(stepper), (std::vector<std::size_t>{1, 3, 5}));
  const std::array<std::uint64_t, 4> missing = {2, 3, 4, 99};
  stepper.needs(missing);
  EXPECT_EQ(work_of(stepper), (std::vector<std::size_t>{2, 4})) << "what it has pushed, it has";
  stepper.replied({.step = 4, .share = share_of(3, 3)});
  EXPECT_EQ(work_of(stepper), (std::vector<std::size_t>{3}));
}

TEST(StepperTest, ElasticSaysWhichMicroBatchIsLikelyNext) {
  Stepper stepper({.micro_batches = 6});
  stepper.replied({.step = 3, .share = share_of(1, 3)});
  EXPECT_EQ(stepper.batch(), (StepBatch{.step = 3, .slot = 1}));
  EXPECT_EQ(stepper.batch_after(), (StepBatch{.step = 3, .slot = 4})) << "the next of its share";
  stepper.computed();
  stepper.pushed();
  EXPECT_EQ(stepper.batch(), (StepBatch{.step = 3, .slot = 4}));
  EXPECT_EQ(stepper.batch_after(), (StepBatch{.step = 4, .slot = 1})) << "the first of a step";
  stepper.computed();
  stepper.pushed();
  const std::array<std::uint64_t, 4> missing = {2, 99, 4, 3};
  stepper.needs(missing);
  EXPECT_EQ(stepper.batch(), (StepBatch{.step = 3, .slot = 2}));
  EXPECT_EQ(stepper.batch_after(), (StepBatch{.step = 3, .slot = 3})) << "there is no 99; it has 4";
}

TEST(StepperTest, WithoutAShareAnElasticTrainerAwaitsTheStep) {
  Stepper stepper({.micro_batches = 6});
  stepper.replied({.step = 3, .share = {}});
  EXPECT_EQ(stepper.next(), NextAction::kAwaitStep);
}

TEST(StepperTest, PushesAreNumberedOnFromWhatThePsCount) {
  Stepper stepper({.sync_replicas = false, .fully_synchronous = false});
  stepper.replied({.step = 20, .counts_from = 7});
  EXPECT_EQ(stepper.sequence(), 8U);
  EXPECT_EQ(stepper.made(), 0U);
  stepper.computed();
  stepper.replied({.step = 21});
  EXPECT_EQ(stepper.sequence(), 9U);
  stepper.computed();
  stepper.replied({.step = 15, .joined = true, .counts_from = 5});
  EXPECT_EQ(stepper.sequence(), 10U) << "none is numbered twice";
  stepper.computed();
  stepper.replied({.step = 15, .joined = true, .counts_from = 30});
  EXPECT_EQ(stepper.sequence(), 31U);
  stepper.computed();
  stepper.replied({.step = 16, .counts_from = 50});
  EXPECT_EQ(stepper.sequence(), 51U) << "it was away, and a ps has said so";
  EXPECT_EQ(stepper.made(), 4U);
}

TEST(StepperTest, TheResultIsInHandOnceTheRunIsOver) {
  Stepper stepper({});
  stepper.replied({.step = 1, .finished = true});
  EXPECT_FALSE(stepper.left(true));
  stepper.run_over();
  EXPECT_EQ(stepper.next(), NextAction::kEnd);
  EXPECT_EQ(stepper.result(), Stepper::Result::kInHand);
}

TEST(StepperTest, AResultThatIsMadeAgainIsKept) {
  Stepper stepper({});
  stepper.replied({.step = 4, .finished = true});
  EXPECT_TRUE(stepper.left(false));
  ASSERT_EQ(stepper.next(), NextAction::kPull);
  stepper.replied({.step = 2});
  stepper.run_over();
  EXPECT_EQ(stepper.result(), Stepper::Result::kKept);
  EXPECT_EQ(stepper.reply().step, 4U);
  stepper.run_over();
  EXPECT_EQ(stepper.result(), Stepper::Result::kKept);
}

TEST(StepperTest, AResultFromBeforeTheLastStepIsKeptAsThatStepsResult) {
  Stepper stepper({});
  stepper.replied({.step = 3});
  stepper.computed();
  stepper.peeked({.step = 3, .finished = true});
  ASSERT_EQ(stepper.next(), NextAction::kLeave);
  EXPECT_EQ(stepper.made(), 0U) << "no step was made";
  EXPECT_TRUE(stepper.left(false));
  stepper.replied({.step = 2});
  stepper.run_over();
  EXPECT_EQ(stepper.reply().step, 3U);
}

TEST(StepperTest, ARunThatWasNotEndedGoesOn) {
  Stepper stepper({});
  stepper.replied({.step = 3});
  stepper.peeked({.step = 1, .joined = true});
  EXPECT_EQ(stepper.next(), NextAction::kCompute);
  EXPECT_EQ(stepper.batch().step, 1U);
}

TEST(StepperTest, AChiefThatIsRolledBackTrainsOn) {
  Stepper stepper({});
  stepper.replied({.step = 4, .finished = true});
  ASSERT_EQ(stepper.next(), NextAction::kLeave);
  stepper.roll_back();
  ASSERT_EQ(stepper.next(), NextAction::kPull);
  EXPECT_FALSE(stepper.reply().finished) << "the ps are not to be set to it once more";
  stepper.replied({.step = 2});
  EXPECT_EQ(stepper.next(), NextAction::kCompute);
  EXPECT_EQ(stepper.sequence(), 1U);
}

TEST(StepperTest, WhereNotEveryGradientCountsTheFinalParametersAreFetched) {
  Stepper stepper({.sync_replicas = false, .fully_synchronous = false});
  stepper.replied({.step = 4, .finished = true});
  EXPECT_FALSE(stepper.left(false)) << "will be others the next time";
  stepper.replied({.step = 4, .finished = true});
  EXPECT_FALSE(stepper.left(true));
  ASSERT_EQ(stepper.next(), NextAction::kFetchFinal);
  stepper.fetched(5);
  EXPECT_EQ(stepper.result(), Stepper::Result::kInHand);
  EXPECT_EQ(stepper.reply().step, 5U);
}

TEST(StepperTest, AResultThatWentWithAPsIsNone) {
  Stepper stepper({});
  stepper.replied({.step = 2});
  stepper.run_over();
  ASSERT_EQ(stepper.next(), NextAction::kFetchFinal);
  stepper.fetched(std::nullopt);
  EXPECT_EQ(stepper.next(), NextAction::kEnd);
  EXPECT_EQ(stepper.result(), Stepper::Result::kNone);
}

}  // namespace
}  // namespace disttf::roles
