// How the micro-batches of an elastic step are scheduled.
#include "roles/ps/core/micro_batch_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace disttf::roles {
namespace {

using Assignment = MicroBatchScheduler::Assignment;
using Activities = std::vector<MicroBatchScheduler::Activity>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kAway = MicroBatchScheduler::Activity::kAway;
constexpr auto kComputes = MicroBatchScheduler::Activity::kComputes;
constexpr auto kWaits = MicroBatchScheduler::Activity::kWaits;

// Three trainers, of which at least two must be present.
class MicroBatchSchedulerTest : public testing::Test {
 protected:
  static net::StepShare share(std::uint32_t first, std::uint32_t stride) {
    return {.first = first, .stride = stride};
  }
  // Returns what is scheduled, if anything.
  std::vector<Assignment> assign(const Activities& activities,
                                 const std::vector<std::size_t>& missing) {
    return scheduler_.is_stuck(activities) ? scheduler_.assign(activities, missing)
                                           : std::vector<Assignment>();
  }

  MicroBatchScheduler scheduler_{3, 2};
};

TEST_F(MicroBatchSchedulerTest, WhoIsHereWhenAStepBeginsSharesIt) {
  scheduler_.begin_step(Activities{kWaits, kAway, kComputes});
  EXPECT_EQ(scheduler_.share_of(0), share(0, 2));
  EXPECT_EQ(scheduler_.share_of(1), share(0, 0));
  EXPECT_EQ(scheduler_.share_of(2), share(1, 2));
}

TEST_F(MicroBatchSchedulerTest, NothingIsScheduledForTooFewTrainers) {
  scheduler_.begin_step(Activities{kWaits, kWaits, kWaits});
  scheduler_.begin_step(Activities{kWaits, kAway, kAway});
  for (const std::size_t rank : {0U, 1U, 2U}) {
    EXPECT_EQ(scheduler_.share_of(rank), share(0, 0)) << rank;
  }
  EXPECT_FALSE(scheduler_.is_stuck(Activities{kWaits, kAway, kAway}));
}

TEST_F(MicroBatchSchedulerTest, WhatIsMissingIsScheduledInTurnsForWaitingTrainers) {
  EXPECT_THAT(assign({kWaits, kAway, kWaits}, {1, 4, 5}),
              ElementsAre(Assignment{0, 1}, Assignment{2, 4}, Assignment{0, 5}));
}

TEST_F(MicroBatchSchedulerTest, NothingIsScheduledWhileATrainerComputes) {
  EXPECT_THAT(assign({kWaits, kComputes, kWaits}, {1}), IsEmpty());
}

TEST_F(MicroBatchSchedulerTest, WhatWasScheduledIsAwaitedBeforeMoreIs) {
  const Activities all_wait{kWaits, kWaits, kAway};
  ASSERT_THAT(assign(all_wait, {0, 1, 2}),
              ElementsAre(Assignment{0, 0}, Assignment{1, 1}, Assignment{0, 2}));
  scheduler_.came(0);
  scheduler_.came(1);
  EXPECT_FALSE(scheduler_.is_stuck(all_wait)) << "0 owes one more";
  scheduler_.came(0);
  EXPECT_TRUE(scheduler_.is_stuck(all_wait));
}

TEST_F(MicroBatchSchedulerTest, WhoWasAnsweredOrHasLeftOwesNothing) {
  const Activities all_wait{kWaits, kWaits, kAway};
  ASSERT_THAT(assign(all_wait, {0, 1}), ElementsAre(Assignment{0, 0}, Assignment{1, 1}));
  scheduler_.came(0);
  EXPECT_FALSE(scheduler_.is_stuck(all_wait));
  scheduler_.forget(1);
  EXPECT_THAT(assign(all_wait, {1}), ElementsAre(Assignment{0, 1}));
}

// Its connection may be lost while its record still has the micro-batches assigned over it.
TEST_F(MicroBatchSchedulerTest, WorkOfADisconnectedTrainerIsNotAwaited) {
  ASSERT_THAT(assign({kWaits, kWaits, kWaits}, {0, 1, 2}),
              ElementsAre(Assignment{0, 0}, Assignment{1, 1}, Assignment{2, 2}));
  scheduler_.came(0);
  scheduler_.came(2);
  EXPECT_THAT(assign({kWaits, kAway, kWaits}, {1}), ElementsAre(Assignment{0, 1}));
}

// A gradient of a trainer's own share does not count as an assigned one.
TEST_F(MicroBatchSchedulerTest, AGradientOfItsShareIsNotOwed) {
  scheduler_.came(0);
  ASSERT_THAT(assign({kWaits, kWaits, kAway}, {0}), ElementsAre(Assignment{0, 0}));
  EXPECT_FALSE(scheduler_.is_stuck(Activities{kWaits, kWaits, kAway}));
}

// With no trainer present, no step is waited for.
TEST(MicroBatchScheduler, NothingIsScheduledWithoutTrainers) {
  const MicroBatchScheduler scheduler(2, 0);
  EXPECT_FALSE(scheduler.is_stuck(Activities{kAway, kAway}));
}

}  // namespace
}  // namespace disttf::roles
