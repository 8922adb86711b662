// What a trainer does next, and which part of a run's result it has in the end.
#include "roles/trainer/core/stepper.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "net/wire/messages.h"
#include "roles/trainer/core/divergence.h"
#include "roles/trainer/core/group_way.h"

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

constexpr GroupWay::Ranges kAll = ~GroupWay::Ranges{0};

// Four trainers on host a, then two on host b.
net::Cluster two_hosts() {
  net::Cluster cluster;
  cluster.ps = {{"p", 1}};
  for (std::uint16_t port = 1; port <= 6; ++port) {
    cluster.workers.push_back({port <= 4 ? "a" : "b", port});
  }
  return cluster;
}

GroupWay decided(GroupWay::Ranges summed) {
  GroupWay way(two_hosts(), 1);
  way.begin(3, 7);
  way.decide(summed);
  return way;
}

TEST(GroupWay, TheFirstOfAHostLeadsTheOthers) {
  for (const std::size_t rank : {0U, 4U}) {
    const GroupWay way(two_hosts(), rank);
    EXPECT_TRUE(way.has_neighbours());
    EXPECT_TRUE(way.leads());
    EXPECT_EQ(way.members(), rank == 0 ? 3U : 1U);
  }
  for (const std::size_t rank : {1U, 2U, 3U, 5U}) {
    const GroupWay way(two_hosts(), rank);
    EXPECT_TRUE(way.has_neighbours());
    EXPECT_FALSE(way.leads());
    EXPECT_EQ(way.members(), rank < 4 ? 3U : 1U);
    EXPECT_EQ(way.member(), rank < 4 ? rank - 1 : 0U);
  }
}

TEST(GroupWay, ATrainerAloneOnItsHostLeadsNoGroup) {
  net::Cluster cluster = two_hosts();
  cluster.workers.resize(1);
  const GroupWay way(cluster, 0);
  EXPECT_FALSE(way.has_neighbours());
  EXPECT_TRUE(way.leads());
  EXPECT_EQ(way.members(), 0U);
}

TEST(GroupWay, KnowsTheStateWhoseGradientIsPushedAndNoOther) {
  GroupWay way(two_hosts(), 1);
  EXPECT_FALSE(way.knows(0, 0)) << "none has begun";
  way.begin(3, 7);
  EXPECT_TRUE(way.knows(3, 7));
  EXPECT_FALSE(way.knows(3, 8));
  EXPECT_FALSE(way.knows(4, 7));
  way.begin(3, 8);
  EXPECT_FALSE(way.knows(3, 7));
}

TEST(GroupWay, EachGradientGoesByItselfUntilItIsDecided) {
  GroupWay way(two_hosts(), 1);
  EXPECT_FALSE(way.is_summed(0));
  way.begin(3, 7);
  EXPECT_FALSE(way.is_summed(0));
  way.decide(0b101);
  EXPECT_TRUE(way.is_summed(0));
  EXPECT_FALSE(way.is_summed(1));
  EXPECT_TRUE(way.is_summed(2));
  way.begin(3, 8);
  EXPECT_FALSE(way.is_summed(0)) << "that was of another state";
}

TEST(GroupWay, PsForWhichThereIsNoBitAreSentEachGradient) {
  const GroupWay way = decided(kAll);
  EXPECT_TRUE(way.is_summed(GroupWay::kMostRanges - 1));
  for (const std::size_t range : {std::size_t{64}, std::size_t{65}, std::size_t{128}}) {
    EXPECT_FALSE(way.is_summed(range)) << range;
  }
}

TEST(GroupWay, HeadersSayOfASumThatItIsOne) {
  const GroupWay way = decided(0b10);
  const net::FrameHeader header =
      net::PushPull{.request_id = 4, .step = 7, .keep_snapshot = true, .generation = 3}.to_header();
  EXPECT_EQ(way.marked(header, 0), header);
  net::PushPull push;
  ASSERT_FALSE(push.from_header(way.marked(header, 1)));
  EXPECT_EQ(
      push,
      (net::PushPull{
          .request_id = 4, .step = 7, .keep_snapshot = true, .group_sum = true, .generation = 3}));
}

// The ps that have answered may be more than those that were sent the sum, or fewer.
TEST(GroupWay, AMemberWhoseLeaderHasGonePushesByItselfWhatIsNotAnswered) {
  GroupWay way = decided(0b1110);
  EXPECT_EQ(way.part(0b0011), 0b1100U);
  EXPECT_FALSE(way.is_summed(0));
  EXPECT_TRUE(way.is_summed(1)) << "the leader has left what it leads to";
  EXPECT_FALSE(way.is_summed(2));
  EXPECT_FALSE(way.is_summed(3));
  EXPECT_EQ(way.part(0b0010), 0U) << "once";
  EXPECT_TRUE(way.knows(3, 7)) << "so it stays";
}

TEST(GroupWay, FromOnePsAMemberMayPartAlone) {
  GroupWay way = decided(kAll);
  way.part_from(1);
  EXPECT_TRUE(way.is_summed(0));
  EXPECT_FALSE(way.is_summed(1));
  EXPECT_TRUE(way.is_summed(2));
  way.part_from(63);
  EXPECT_FALSE(way.is_summed(63));
  EXPECT_TRUE(way.is_summed(62));
}

}  // namespace
}  // namespace disttf::roles
