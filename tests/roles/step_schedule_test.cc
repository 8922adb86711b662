// How the micro-batches of an elastic step are scheduled.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "math/random.h"
#include "roles/ps/core/micro_batch_scheduler.h"
#include "roles/ps/core/staleness_clocks.h"
#include "roles/ps/core/step_times.h"

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

// Which trainer of an asynchronous run is ahead of which, and which are held for it.

// Three trainers, which may be 2 iterations apart.
class StalenessClocksTest : public testing::Test {
 protected:
  void join_all() {
    for (const std::size_t trainer : {0U, 1U, 2U}) {
      clocks_.join(trainer);
    }
  }

  StalenessClocks clocks_{3, 2};
};

TEST_F(StalenessClocksTest, HoldsWhoIsFurtherAheadThanTheBound) {
  join_all();
  clocks_.set(0, 2);
  EXPECT_FALSE(clocks_.is_held(0));
  clocks_.set(0, 3);
  EXPECT_TRUE(clocks_.is_held(0));
  EXPECT_FALSE(clocks_.is_held(1));
}

TEST_F(StalenessClocksTest, TheLastOfTheSlowestReleasesTheOthers) {
  join_all();
  clocks_.set(0, 3);
  const std::uint64_t before = clocks_.releases();
  clocks_.set(1, 1);
  EXPECT_TRUE(clocks_.is_held(0));
  EXPECT_EQ(clocks_.releases(), before);
  clocks_.set(2, 1);
  EXPECT_FALSE(clocks_.is_held(0));
  EXPECT_NE(clocks_.releases(), before);
}

TEST_F(StalenessClocksTest, TheSlowestReleasesTheOthersWhenItLeaves) {
  join_all();
  clocks_.set(0, 3);
  clocks_.set(1, 1);
  const std::uint64_t before = clocks_.releases();
  clocks_.leave(2);
  EXPECT_FALSE(clocks_.is_held(0));
  EXPECT_NE(clocks_.releases(), before);
}

TEST_F(StalenessClocksTest, ALoneTrainerIsNotHeld) {
  clocks_.join(0);
  clocks_.set(0, 100);
  EXPECT_FALSE(clocks_.is_held(0));
  clocks_.leave(0);
  clocks_.leave(0);
  EXPECT_FALSE(clocks_.is_held(0));
}

TEST_F(StalenessClocksTest, ANewProcessMayCountFromBelow) {
  join_all();
  for (const std::size_t trainer : {0U, 1U, 2U}) {
    clocks_.set(trainer, 10);
  }
  clocks_.set(2, 7);
  EXPECT_TRUE(clocks_.is_held(0));
  EXPECT_EQ(clocks_.counts_from(2), 7U);
}

TEST_F(StalenessClocksTest, WhoComesLateCountsFromTheSlowest) {
  clocks_.join(0);
  clocks_.join(1);
  clocks_.set(0, 9);
  clocks_.set(1, 8);
  clocks_.join(2);
  EXPECT_EQ(clocks_.counts_from(2), 8U);
  EXPECT_EQ(clocks_.clock(2), 0U);
  EXPECT_FALSE(clocks_.is_held(0));
}

TEST_F(StalenessClocksTest, WhoIsBehindByNoMoreThanItMayCountsAsBefore) {
  clocks_.join(0);
  clocks_.set(0, 3);
  clocks_.join(1);
  EXPECT_EQ(clocks_.counts_from(1), 0U);
}

TEST(StalenessClocks, NoTrainerIsHeldWithoutABound) {
  StalenessClocks clocks(2, std::nullopt);
  clocks.join(0);
  clocks.join(1);
  clocks.set(0, 1000);
  EXPECT_FALSE(clocks.is_held(0));
}

// Computes whether a trainer is held by comparing all the others again.
struct Reference {
  std::array<std::uint64_t, 4> counted{};
  std::array<std::uint64_t, 4> clock{};
  std::array<bool, 4> joined{};

  [[nodiscard]] bool is_held(std::size_t trainer, std::uint64_t bound) const {
    std::optional<std::uint64_t> slowest;
    for (std::size_t other = 0; other < counted.size(); ++other) {
      if (other != trainer && joined.at(other)) {
        slowest = std::min(slowest.value_or(counted.at(other)), counted.at(other));
      }
    }
    return slowest && clock.at(trainer) > *slowest + bound;
  }
};

TEST(StalenessClocks, WhoIsHeldIsWhoIsAheadOfTheSlowestOtherWhateverHappens) {
  constexpr std::uint64_t kBound = 3;
  StalenessClocks clocks(4, kBound);
  Reference reference;
  std::array<bool, 4> was_held{};
  std::uint64_t releases = clocks.releases();
  for (std::uint64_t each = 0; each < 20000; ++each) {
    const std::uint64_t bits = math::random_bits(1, 1, 0, each);
    const std::size_t trainer = bits % 4;
    switch (bits / 4 % 8) {
      case 0:
        clocks.join(trainer);
        reference.joined.at(trainer) = true;
        break;
      case 1:
        clocks.leave(trainer);
        reference.joined.at(trainer) = false;
        break;
      default: {
        const std::uint64_t below = bits / 32 % 16 == 0 ? 2 : 0;
        const std::uint64_t next = clocks.counts_from(trainer) + 1;
        clocks.set(trainer, next - std::min(below, next));
        break;
      }
    }
    for (std::size_t rank = 0; rank < 4; ++rank) {
      reference.clock.at(rank) = clocks.clock(rank);
      reference.counted.at(rank) = clocks.counts_from(rank);
    }
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const bool is_held = clocks.is_held(rank);
      ASSERT_EQ(is_held, reference.is_held(rank, kBound)) << "after " << each;
      // The trainer's own clock may release it as well; it notices that itself.
      ASSERT_TRUE(!was_held.at(rank) || is_held || rank == trainer || clocks.releases() != releases)
          << "no trainer was notified after " << each;
      was_held.at(rank) = is_held;
    }
    releases = clocks.releases();
  }
}

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::FloatNear;

class StepTimesTest : public testing::Test {
 protected:
  void at(int milliseconds_since) { now_ = kStart + milliseconds(milliseconds_since); }
  void make(std::uint64_t step, int from, int until) {
    at(from);
    times_.making(step, step + 1, now_);
    at(until);
    if (times_.is_awaited()) {
      times_.made(now_);
    }
  }
  void arrive(std::size_t rank, std::uint64_t step, int time) {
    at(time);
    times_.arrived(rank, step, now_);
  }

  static constexpr StepTimes::Clock::time_point kStart{std::chrono::hours(1)};
  StepTimes::Clock::time_point now_ = kStart;
  StepTimes times_{2};
};

TEST_F(StepTimesTest, MeasuresFromWhenTheParametersWereThere) {
  make(0, 0, 10);
  arrive(0, 1, 30);
  arrive(1, 1, 50);
  make(1, 50, 54);
  const auto samples = times_.take();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].step, 1U);
  EXPECT_THAT(samples[0].arrived, ElementsAre(FloatNear(0.020F, 1e-6F), FloatNear(0.040F, 1e-6F)));
  EXPECT_THAT(samples[0].apply, FloatNear(0.004F, 1e-6F));
}

TEST_F(StepTimesTest, WhoHasNotComeIsBelowZero) {
  make(0, 0, 10);
  arrive(1, 1, 50);
  arrive(0, 0, 51);  // of an earlier step
  make(1, 51, 54);
  EXPECT_LT(times_.take().at(0).arrived[0], 0);
}

TEST_F(StepTimesTest, EachStepOfAWindowIsKept) {
  times_.trace({.from = 2, .count = 2});
  for (int step = 0; step < 6; ++step) {
    make(static_cast<std::uint64_t>(step), 10 * step + 4, 10 * step + 6);
  }
  const auto traced = times_.take_traced(64);
  ASSERT_EQ(traced.size(), 2U);
  EXPECT_EQ(traced[0].step, 2U);
  EXPECT_EQ(traced[1].step, 3U);
  EXPECT_EQ(traced[1].began,
            std::chrono::nanoseconds((kStart + milliseconds(26)).time_since_epoch()).count());
  EXPECT_THAT(traced[1].waited, FloatNear(0.008F, 1e-6F));
  EXPECT_THAT(traced[1].apply, FloatNear(0.002F, 1e-6F));
  EXPECT_TRUE(times_.all_traced_taken());
}

TEST_F(StepTimesTest, TracedStepsAreTakenAFewAtATime) {
  times_.trace({.from = 1, .count = 3});
  for (int step = 0; step < 6; ++step) {
    make(static_cast<std::uint64_t>(step), 10 * step + 4, 10 * step + 6);
  }
  times_.trace({.from = 1, .count = 3});  // the same window again
  EXPECT_EQ(times_.take_traced(2).size(), 2U);
  EXPECT_FALSE(times_.all_traced_taken());
  EXPECT_EQ(times_.take_traced(2).size(), 1U);
  EXPECT_TRUE(times_.all_traced_taken());
  times_.trace({.from = 100, .count = 3});
  EXPECT_TRUE(times_.take_traced(2).empty());
}

// The first step of a state: when its parameters became available is unknown.
TEST_F(StepTimesTest, AStepWhoseBeginningWasNotSeenIsNotMeasured) {
  arrive(0, 7, 5);
  make(7, 6, 7);
  EXPECT_TRUE(times_.take().empty());
}

TEST_F(StepTimesTest, AfterARollbackTheStepUnderWayIsForgotten) {
  make(9, 0, 10);
  make(3, 50, 51);  // not 10: the state was replaced
  EXPECT_TRUE(times_.take().empty());
  arrive(0, 4, 60);
  make(4, 60, 61);
  EXPECT_EQ(times_.take().at(0).step, 4U);
}

TEST_F(StepTimesTest, LooksAtNoClockForStepsThatAreNotMeasured) {
  int looked = 0;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    times_.making(step, step + 1, now_);
    if (times_.is_awaited()) {
      ++looked;
      times_.made(now_);
    }
  }
  EXPECT_LT(looked, 400);
}

}  // namespace
}  // namespace disttf::roles
