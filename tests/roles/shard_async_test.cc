// Asynchronous training: each push counts exactly once across retries; staleness is counted and
// bounded.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "roles/ps/core/shard.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

PushId async_id(std::size_t trainer, std::uint64_t sequence, std::uint64_t step = 0,
                std::uint64_t incarnation = kProcess) {
  return {.trainer = trainer, .incarnation = incarnation, .step = step, .sequence = sequence};
}

class AsyncShard : public testing::Test {
 protected:
  void push_one(const PushId& id) { push(shard_, id, Values{1}); }
  Shard shard_{async_config(2), {.begin = 0, .end = 1}};
};

TEST_F(AsyncShard, AppliesEachPushAtOnceAndAnswersIt) {
  push_one(async_id(0, 1));
  EXPECT_EQ(shard_.step(), 1U);
  EXPECT_TRUE(shard_.answerable(0));
  push_one(async_id(0, 2, 1));
  EXPECT_EQ(values_of(shard_.answer(0).parameters), (Values{-2}));
}

TEST_F(AsyncShard, OnceTheResultHasBeenFetchedAPushIsAnsweredAndDropped) {
  push_one(async_id(0, 1));
  ASSERT_EQ(shard_.admit(async_id(1, 1)).verdict, Verdict::kReceive);
  shard_.conclude();
  shard_.commit(async_id(1, 1));  // it was in flight
  EXPECT_EQ(shard_.admit(async_id(0, 2, 1)).verdict, Verdict::kDiscard);
  EXPECT_EQ(shard_.step(), 1U);
  EXPECT_TRUE(shard_.answer(0).dropped);
  EXPECT_TRUE(shard_.answer(1).dropped);
  EXPECT_EQ(shard_.admit(async_id(0, 1)).verdict, Verdict::kDiscard);
  EXPECT_FALSE(shard_.answer(0).dropped) << "a repeat of one that is in the result";
}

TEST_F(AsyncShard, ARepeatIsAnsweredAndNotApplied) {
  push_one(async_id(0, 1));
  EXPECT_EQ(shard_.admit(async_id(0, 1)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(shard_.answerable(0));
  EXPECT_EQ(shard_.step(), 1U);
  EXPECT_EQ(shard_.counters().repeats, 1U);
  EXPECT_EQ(shard_.counters().applied, 1U);
}

TEST_F(AsyncShard, APushThatBrokeOffMidwayIsAppliedOnceWhenRepeated) {
  static_cast<void>(shard_.admit(async_id(0, 1)));
  push_one(async_id(0, 1));
  EXPECT_EQ(shard_.admit(async_id(0, 1)).verdict, Verdict::kDiscard);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-1}));
}

TEST_F(AsyncShard, TheSameSequenceOfAnotherTrainerIsAnotherPush) {
  push_one(async_id(0, 1));
  push_one(async_id(1, 1));
  EXPECT_EQ(shard_.step(), 2U);
}

TEST_F(AsyncShard, ANewProcessCountsItsPushesFromOneAgain) {
  push_one(async_id(0, 1));
  push_one(async_id(0, 2, 1));
  push_one(async_id(0, 1, 2, kProcess + 1));
  EXPECT_EQ(shard_.step(), 3U);
  EXPECT_EQ(shard_.admit(async_id(0, 1, 2, kProcess + 1)).verdict, Verdict::kDiscard);
}

TEST_F(AsyncShard, RefusesAPushFromTheFuture) {
  EXPECT_EQ(shard_.admit(async_id(0, 1, 4)).verdict, Verdict::kRefuse);
}

TEST_F(AsyncShard, CountsTheUpdatesBetweenATrainersReadAndItsPush) {
  push_one(async_id(0, 1, 0));  // read at 0, applied to 0: stale by 0
  push_one(async_id(0, 2, 1));  // 0
  push_one(async_id(1, 1, 0));  // read at 0, applied to 2: 2
  push_one(async_id(0, 3, 2));  // read at 2, applied to 3: 1
  EXPECT_EQ(shard_.counters().staleness_sum, 3U);
  EXPECT_EQ(shard_.counters().staleness_max, 2U);
}

TEST_F(AsyncShard, AnAnswerStaysAsItWasWhileOthersPush) {
  push_one(async_id(0, 1));
  const Answer answer = shard_.answer(0);
  push_one(async_id(1, 1));
  EXPECT_EQ(values_of(answer.parameters), (Values{-1}));
}

TEST(AsyncShardAtTheEnd, DoesNotApplyWhatComesAfterTheLastStep) {
  Shard shard(async_config(2, {}, /*train_steps=*/1), {.begin = 0, .end = 1});
  const Admission slow = shard.admit(async_id(1, 1));
  push(shard, async_id(0, 1), Values{1});
  ASSERT_TRUE(shard.finished());
  fill(slow, Values{1000});
  shard.commit(async_id(1, 1));
  EXPECT_EQ(shard.admit(async_id(1, 2)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(shard.answerable(1));
  EXPECT_TRUE(shard.answer(1).finished);
  EXPECT_EQ(values_of(shard.parameters()), (Values{-1}));
  EXPECT_EQ(shard.step(), 1U);
}

// Three trainers, some of which join, depending on the test.
class BoundedShard : public testing::TestWithParam<std::uint64_t> {
 protected:
  void push_next(std::size_t trainer) {
    const std::uint64_t number = shard_.policy().counts_from(trainer) + 1;
    push(shard_, async_id(trainer, number, shard_.step()), Values{1});
  }
  void push_times(std::size_t trainer, std::uint64_t times) {
    for (std::uint64_t each = 0; each < times; ++each) {
      push_next(trainer);
    }
  }
  [[nodiscard]] static std::uint64_t bound() { return GetParam(); }

  // On both ps.
  void join_everywhere(std::size_t trainers) {
    for (std::size_t trainer = 0; trainer < trainers; ++trainer) {
      shard_.policy().join(trainer);
      other_.policy().join(trainer);
    }
  }
  void push_everywhere(std::size_t trainer, std::uint64_t number) {
    for (Shard* const shard : {&shard_, &other_}) {
      push(*shard, async_id(trainer, number, shard->step()), Values{1});
    }
  }
  // Two trainers compute and push, each after both ps have answered, and number their pushes as
  // the ps require.
  void expect_both_go_on() {
    std::array<std::uint64_t, 2> newest{};
    std::array<std::uint64_t, 2> pushes{};
    const std::uint64_t rounds = 4 * bound() + 20;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (const std::size_t trainer : {0U, 1U}) {
        if (round > 0 && !(shard_.answerable(trainer) && other_.answerable(trainer))) {
          continue;
        }
        newest.at(trainer) = std::max({newest.at(trainer), shard_.policy().counts_from(trainer),
                                       other_.policy().counts_from(trainer)}) +
                             1;
        push_everywhere(trainer, newest.at(trainer));
        ++pushes.at(trainer);
        EXPECT_EQ(shard_.policy().counts_from(trainer), other_.policy().counts_from(trainer));
      }
    }
    EXPECT_GE(pushes[0], bound() + 5) << "neither waits for the other for good";
    EXPECT_GE(pushes[1], bound() + 5);
  }

  Shard shard_{async_config(3, GetParam()), {.begin = 0, .end = 1}};
  Shard other_{async_config(3, GetParam()), {.begin = 1, .end = 2}};
};

TEST_P(BoundedShard, HoldsATrainerThatIsFurtherAheadThanTheBound) {
  shard_.policy().join(0);
  shard_.policy().join(1);
  push_times(0, bound());
  EXPECT_TRUE(shard_.answerable(0));
  push_next(0);
  EXPECT_FALSE(shard_.answerable(0));
  push_next(1);  // the slowest trainer advances
  EXPECT_TRUE(shard_.answerable(0));
  EXPECT_TRUE(shard_.answerable(1));
}

TEST_P(BoundedShard, AppliesThePushThatItDoesNotAnswerYet) {
  shard_.policy().join(0);
  shard_.policy().join(1);
  push_times(0, bound() + 1);
  EXPECT_FALSE(shard_.answerable(0));
  EXPECT_EQ(shard_.step(), bound() + 1);
}

// The replaced trainer died between its pushes to two ps.
TEST_P(BoundedShard, PsCountAlikeFromTheNextPushOnOfWhoHasTakenAPlace) {
  join_everywhere(2);
  push_next(1);
  expect_both_go_on();
}

// Its connection to one ps broke, and the other trainers continued meanwhile.
TEST_P(BoundedShard, PsOfWhichOneLostATrainerForATimeCauseNoDeadlock) {
  join_everywhere(2);
  push_everywhere(1, 1);
  other_.policy().leave(1);
  push_everywhere(0, 1);
  for (std::uint64_t each = 0; each < bound() + 3; ++each) {
    push(other_, async_id(0, 2 + each, other_.step()), Values{1});
  }
  other_.policy().join(1);
  EXPECT_GT(other_.policy().counts_from(1), shard_.policy().counts_from(1));
  expect_both_go_on();
}

// A ps was lost, and its replacement has recorded no clocks.
TEST_P(BoundedShard, PsOfWhichOneIsNewCauseNoDeadlock) {
  for (const std::size_t trainer : {0U, 1U}) {
    shard_.policy().join(trainer);
    push_times(trainer, 7 + 2 * trainer);
    other_.policy().join(trainer);
  }
  expect_both_go_on();
}

TEST_P(BoundedShard, ATrainerThatNeverJoinedHoldsBackNoOther) {
  shard_.policy().join(0);
  push_times(0, bound() + 5);
  EXPECT_TRUE(shard_.answerable(0));
}

TEST_P(BoundedShard, TheSlowestReleasesTheOthersWhenItLeaves) {
  shard_.policy().join(0);
  shard_.policy().join(1);
  push_times(0, bound() + 1);
  EXPECT_FALSE(shard_.answerable(0));
  shard_.policy().leave(1);
  EXPECT_TRUE(shard_.answerable(0));
}

TEST_P(BoundedShard, TheSecondSlowestHoldsOnWhenTheSlowestLeaves) {
  for (std::size_t trainer = 0; trainer < 3; ++trainer) {
    shard_.policy().join(trainer);
  }
  push_next(1);
  push_times(0, bound() + 2);
  shard_.policy().leave(2);
  EXPECT_FALSE(shard_.answerable(0));
  push_next(1);
  EXPECT_TRUE(shard_.answerable(0));
}

TEST_P(BoundedShard, ANewcomerStartsLevelWithTheSlowest) {
  shard_.policy().join(0);
  push_times(0, 10);
  shard_.policy().join(1);
  push_times(0, bound());
  EXPECT_TRUE(shard_.answerable(0));
  push_next(0);
  EXPECT_FALSE(shard_.answerable(0));
  push_next(1);
  EXPECT_TRUE(shard_.answerable(0));
}

TEST_P(BoundedShard, ATrainerThatComesBackIsNotWaitedForOverWhatItMissed) {
  shard_.policy().join(0);
  shard_.policy().join(1);
  push_next(1);
  shard_.policy().leave(1);
  push_times(0, 10);
  shard_.policy().join(1);
  push_times(0, bound());
  EXPECT_TRUE(shard_.answerable(0));
}

TEST_P(BoundedShard, WhoComesBackIsToldWhereToGoOn) {
  shard_.policy().join(0);
  shard_.policy().join(1);
  push(shard_, async_id(1, 1), Values{1});
  shard_.policy().leave(1);
  push_times(0, 10);
  shard_.policy().join(1);
  EXPECT_EQ(shard_.policy().counts_from(1), 10U);
  push_times(0, bound() + 1);
  EXPECT_FALSE(shard_.answerable(0));
  // Computed before it learned the new number.
  push(shard_, async_id(1, 2, shard_.step()), Values{1});
  EXPECT_TRUE(shard_.answerable(1));
  EXPECT_FALSE(shard_.answerable(0));
  push(shard_, async_id(1, 11, shard_.step()), Values{1});
  EXPECT_TRUE(shard_.answerable(0));
}

TEST_P(BoundedShard, WhoComesBackAtOnceCountsAsBefore) {
  shard_.policy().join(0);
  shard_.policy().join(1);
  push_times(0, bound() + 1);
  shard_.policy().leave(1);
  shard_.policy().join(1);
  EXPECT_EQ(shard_.policy().counts_from(1), 0U);
  EXPECT_FALSE(shard_.answerable(0));
}

TEST_P(BoundedShard, JoiningTwiceMovesNothing) {
  shard_.policy().join(0);
  shard_.policy().join(1);
  push_times(0, bound() + 1);
  shard_.policy().join(1);
  EXPECT_FALSE(shard_.answerable(0));
}

TEST_P(BoundedShard, TheEndOfTheRunReleasesAllTrainers) {
  Shard shard(async_config(2, bound(), /*train_steps=*/bound() + 1), {.begin = 0, .end = 1});
  shard.policy().join(0);
  shard.policy().join(1);
  for (std::uint64_t each = 0; each <= bound(); ++each) {
    push(shard, async_id(0, each + 1, each), Values{1});
  }
  EXPECT_TRUE(shard.finished());
  EXPECT_TRUE(shard.answerable(0));
  EXPECT_TRUE(shard.answerable(1));
}

INSTANTIATE_TEST_SUITE_P(Bounds, BoundedShard, testing::Values(0U, 1U, 2U));

}  // namespace
}  // namespace disttf::roles
