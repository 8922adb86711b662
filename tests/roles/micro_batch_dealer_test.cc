// How the micro-batches of an elastic step are scheduled.
#include "roles/ps/core/micro_batch_dealer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace disttf::roles {
namespace {

using Deal = MicroBatchDealer::Deal;
using Activities = std::vector<MicroBatchDealer::Activity>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kAway = MicroBatchDealer::Activity::kAway;
constexpr auto kComputes = MicroBatchDealer::Activity::kComputes;
constexpr auto kWaits = MicroBatchDealer::Activity::kWaits;

// Three trainers, of which at least two must be present.
class MicroBatchDealerTest : public testing::Test {
 protected:
  static net::StepShare share(std::uint32_t first, std::uint32_t stride) {
    return {.first = first, .stride = stride};
  }
  // Returns what is scheduled, if anything.
  std::vector<Deal> deal(const Activities& activities, const std::vector<std::size_t>& missing) {
    return dealer_.is_stuck(activities) ? dealer_.deal(activities, missing) : std::vector<Deal>();
  }

  MicroBatchDealer dealer_{3, 2};
};

TEST_F(MicroBatchDealerTest, WhoIsHereWhenAStepBeginsSharesIt) {
  dealer_.begin_step(Activities{kWaits, kAway, kComputes});
  EXPECT_EQ(dealer_.share_of(0), share(0, 2));
  EXPECT_EQ(dealer_.share_of(1), share(0, 0));
  EXPECT_EQ(dealer_.share_of(2), share(1, 2));
}

TEST_F(MicroBatchDealerTest, TooFewAreDealtNothing) {
  dealer_.begin_step(Activities{kWaits, kWaits, kWaits});
  dealer_.begin_step(Activities{kWaits, kAway, kAway});
  for (const std::size_t rank : {0U, 1U, 2U}) {
    EXPECT_EQ(dealer_.share_of(rank), share(0, 0)) << rank;
  }
  EXPECT_FALSE(dealer_.is_stuck(Activities{kWaits, kAway, kAway}));
}

TEST_F(MicroBatchDealerTest, WhatIsMissingIsDealtInTurnsToThoseWhoWait) {
  EXPECT_THAT(deal({kWaits, kAway, kWaits}, {1, 4, 5}),
              ElementsAre(Deal{0, 1}, Deal{2, 4}, Deal{0, 5}));
}

TEST_F(MicroBatchDealerTest, WhileSomebodyComputesNothingIsDealt) {
  EXPECT_THAT(deal({kWaits, kComputes, kWaits}, {1}), IsEmpty());
}

TEST_F(MicroBatchDealerTest, WhatWasDealtIsAwaitedBeforeMoreIs) {
  const Activities all_wait{kWaits, kWaits, kAway};
  ASSERT_THAT(deal(all_wait, {0, 1, 2}), ElementsAre(Deal{0, 0}, Deal{1, 1}, Deal{0, 2}));
  dealer_.came(0);
  dealer_.came(1);
  EXPECT_FALSE(dealer_.is_stuck(all_wait)) << "0 owes one more";
  dealer_.came(0);
  EXPECT_TRUE(dealer_.is_stuck(all_wait));
}

TEST_F(MicroBatchDealerTest, WhoWasAnsweredOrHasLeftOwesNothing) {
  const Activities all_wait{kWaits, kWaits, kAway};
  ASSERT_THAT(deal(all_wait, {0, 1}), ElementsAre(Deal{0, 0}, Deal{1, 1}));
  dealer_.came(0);
  EXPECT_FALSE(dealer_.is_stuck(all_wait));
  dealer_.forget(1);
  EXPECT_THAT(deal(all_wait, {1}), ElementsAre(Deal{0, 1}));
}

// Its connection may be lost while its record still has the micro-batches assigned over it.
TEST_F(MicroBatchDealerTest, NobodyWaitsForWhatOneThatIsAwayOwes) {
  ASSERT_THAT(deal({kWaits, kWaits, kWaits}, {0, 1, 2}),
              ElementsAre(Deal{0, 0}, Deal{1, 1}, Deal{2, 2}));
  dealer_.came(0);
  dealer_.came(2);
  EXPECT_THAT(deal({kWaits, kAway, kWaits}, {1}), ElementsAre(Deal{0, 1}));
}

// A gradient of a trainer's own share does not count as an assigned one.
TEST_F(MicroBatchDealerTest, AGradientOfItsShareIsNotOwed) {
  dealer_.came(0);
  ASSERT_THAT(deal({kWaits, kWaits, kAway}, {0}), ElementsAre(Deal{0, 0}));
  EXPECT_FALSE(dealer_.is_stuck(Activities{kWaits, kWaits, kAway}));
}

// With no trainer present, no step is waited for.
TEST(MicroBatchDealer, NothingIsDealtToNobody) {
  const MicroBatchDealer dealer(2, 0);
  EXPECT_FALSE(dealer.is_stuck(Activities{kAway, kAway}));
}

}  // namespace
}  // namespace disttf::roles
