// Which step a process that watches a run requests from its ps.
#include "run/watch/snapshot_plan.h"

#include <gtest/gtest.h>

namespace disttf::roles {
namespace {

using State = SnapshotPlan::State;

TEST(SnapshotPlan, AsksForAStepThatNoPsHasMade) {
  SnapshotPlan plan(2);
  plan.saw(40);
  plan.saw(41);
  EXPECT_GT(plan.begin(), 41U);
}

TEST(SnapshotPlan, ShardsOfOneStepAreASnapshot) {
  SnapshotPlan plan(2);
  const std::uint64_t step = plan.begin();
  plan.took(1, {.step = step, .generation = 1});
  EXPECT_EQ(plan.state(), State::kIncomplete);
  plan.took(0, {.step = step, .generation = 1});
  EXPECT_EQ(plan.state(), State::kWhole);
  EXPECT_EQ(plan.step(), step);
}

TEST(SnapshotPlan, PartsOfTwoStepsOrTwoStatesAreNone) {
  SnapshotPlan plan(2);
  plan.took(0, {.step = 5, .generation = 1});
  plan.took(1, {.step = 6, .generation = 1});
  EXPECT_EQ(plan.state(), State::kTorn);
  plan.took(0, {.step = 6, .generation = 2});
  EXPECT_EQ(plan.state(), State::kTorn);
}

// Steps are made between the two requests: the plan finds the distance that suffices.
TEST(SnapshotPlan, LearnsHowFarAheadToAsk) {
  constexpr std::uint64_t kBetween = 100;
  SnapshotPlan plan(2);
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

TEST(SnapshotPlan, TheResultNeedsThePartsOfAll) {
  SnapshotPlan plan(2);
  plan.took(0, {.step = 7, .generation = 1});
  plan.took(1, {.step = 9, .generation = 1, .is_last = true});
  EXPECT_EQ(plan.state(), State::kIncomplete);
  static_cast<void>(plan.begin());
  plan.lost();  // the ps that had sent its shard is lost
  plan.took(0, {.step = 9, .generation = 1, .is_last = true});
  EXPECT_EQ(plan.state(), State::kResult);
  EXPECT_EQ(plan.step(), 9U);
}

TEST(SnapshotPlan, OfPsThatWereLostNothingIsLeft) {
  SnapshotPlan plan(2);
  plan.saw(50);
  plan.took(0, {.step = 51, .generation = 1});
  plan.lost();
  plan.took(1, {.step = 51, .generation = 1});
  EXPECT_EQ(plan.state(), State::kIncomplete);
}

}  // namespace
}  // namespace disttf::roles
