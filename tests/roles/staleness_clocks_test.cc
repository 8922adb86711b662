// Which trainer of an asynchronous run is ahead of which, and which are held for it.
#include "roles/ps/core/staleness_clocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "math/random.h"

namespace disttf::roles {
namespace {

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

}  // namespace
}  // namespace disttf::roles
