// Synchronous training with backup workers: the first gradients make a step, and late ones are
// dropped.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "roles/ps/core/shard.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

class BackupShard : public testing::Test {
 protected:
  // Two of three gradients make a step.
  Shard shard_{backup_config(3, 2), {.begin = 0, .end = 2}};
};

TEST_F(BackupShard, TheFirstGradientsMakeTheStep) {
  push(shard_, 2, 0, 2);
  push(shard_, 0, 0, 4);
  EXPECT_EQ(shard_.step(), 1U);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-3, -3}));
  EXPECT_EQ(shard_.counters().applied, 2U);
}

TEST_F(BackupShard, ALateGradientIsDroppedCountedAndToldToItsTrainer) {
  push(shard_, 0, 0, 2);
  push(shard_, 1, 0, 2);
  EXPECT_EQ(shard_.admit(sync_id(2, 0)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(shard_.answerable(2));
  const Answer answer = shard_.answer(2);
  EXPECT_TRUE(answer.dropped);
  EXPECT_EQ(answer.step, 1U);
  EXPECT_EQ(shard_.counters().dropped, 1U);
  EXPECT_EQ(shard_.counters().repeats, 0U);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-2, -2}));
}

TEST_F(BackupShard, ATrainerThatIsLateStepAfterStepIsDroppedEveryTime) {
  for (std::uint64_t step = 0; step < 4; ++step) {
    push(shard_, 0, step, 2);
    push(shard_, 1, step, 2);
    EXPECT_EQ(shard_.admit(sync_id(2, step)).verdict, Verdict::kDiscard);
    EXPECT_TRUE(shard_.answer(2).dropped) << step;
    EXPECT_EQ(shard_.counters().dropped, step + 1);
  }
  EXPECT_EQ(shard_.counters().repeats, 0U);
}

TEST_F(BackupShard, ARepeatOfALateGradientIsCountedOnceAndStillDropped) {
  push(shard_, 0, 0, 2);
  push(shard_, 1, 0, 2);
  static_cast<void>(shard_.admit(sync_id(2, 0)));
  static_cast<void>(shard_.admit(sync_id(2, 0)));
  EXPECT_TRUE(shard_.answer(2).dropped);
  EXPECT_EQ(shard_.counters().dropped, 1U);
  EXPECT_EQ(shard_.counters().repeats, 1U);
}

TEST_F(BackupShard, ARepeatOfAGradientThatCountedIsNotCalledDropped) {
  push(shard_, 0, 0, 2);
  push(shard_, 1, 0, 2);
  EXPECT_EQ(shard_.admit(sync_id(0, 0)).verdict, Verdict::kDiscard);
  EXPECT_FALSE(shard_.answer(0).dropped);
  EXPECT_EQ(shard_.counters().dropped, 0U);
  EXPECT_EQ(shard_.counters().repeats, 1U);
}

TEST_F(BackupShard, AGradientIsDroppedWhenOthersMakeTheStepWhileItIsOnItsWay) {
  const PushId slow = sync_id(2, 0);
  const Admission admission = shard_.admit(slow);
  push(shard_, 0, 0, 2);
  push(shard_, 1, 0, 2);
  fill(admission, Values{1000, 1000});
  shard_.commit(slow);
  EXPECT_TRUE(shard_.answerable(2));
  EXPECT_TRUE(shard_.answer(2).dropped);
  EXPECT_EQ(shard_.counters().dropped, 1U);
  // Neither this step nor the next contains it.
  push(shard_, 0, 1, 2);
  EXPECT_EQ(shard_.step(), 1U);
  push(shard_, 1, 1, 2);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-4, -4}));
}

TEST_F(BackupShard, TheLateFlagGoesWithTheNextGradientThatCounts) {
  push(shard_, 0, 0, 2);
  push(shard_, 1, 0, 2);
  static_cast<void>(shard_.admit(sync_id(2, 0)));
  push(shard_, 2, 1, 2);
  push(shard_, 0, 1, 2);
  EXPECT_FALSE(shard_.answer(2).dropped);
}

TEST_F(BackupShard, AnAnswerStaysAsItWasWhileLaterStepsAreMade) {
  push(shard_, 0, 0, 2);
  push(shard_, 1, 0, 2);
  const Answer answer = shard_.answer(2);  // still in flight, on a slow connection
  push(shard_, 0, 1, 2);
  push(shard_, 1, 1, 2);
  EXPECT_EQ(values_of(answer.parameters), (Values{-2, -2}));
  EXPECT_EQ(values_of(shard_.answer(0).parameters), (Values{-4, -4}));
}

// A trainer whose gradient waits for the step is answered when the run ends, and computes on in the
// memory that the gradient may lie in.
TEST_F(BackupShard, TheEndDropsTheGradientsOfAStepThatIsNotMade) {
  restore(shard_, {0, 0}, 0);
  push(shard_, 0, 0, 1);
  shard_.conclude();
  EXPECT_TRUE(shard_.answer(0).dropped);
  EXPECT_EQ(shard_.admit(sync_id(0, 0)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(shard_.answer(0).dropped) << "a repeat of it is no other gradient";
  EXPECT_EQ(shard_.admit(sync_id(1, 0)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(shard_.answer(1).dropped);
  EXPECT_FALSE(shard_.answer(2).dropped);
  EXPECT_EQ(shard_.step(), 0U);
}

TEST(BackupShardAtTheEnd, ALateGradientOfTheLastStepIsDroppedAsWell) {
  Shard shard(backup_config(3, 2, /*train_steps=*/1), {.begin = 0, .end = 1});
  const PushId slow = sync_id(1, 0);
  const Admission admission = shard.admit(slow);
  push(shard, 0, 0, 2);
  push(shard, 2, 0, 2);
  ASSERT_TRUE(shard.finished());
  fill(admission, Values{1000});
  shard.commit(slow);
  EXPECT_TRUE(shard.answer(1).dropped);
  EXPECT_TRUE(shard.answer(1).finished);
  EXPECT_EQ(values_of(shard.parameters()), (Values{-2}));
  EXPECT_EQ(shard.counters().dropped, 1U);
}

// Gradients of micro-batches, from any trainer, sent or in place.

class ElasticShard : public testing::Test {
 protected:
  static RunConfig config() {
    RunConfig config = sgd_config(2);
    config.micro_batches = 3;
    return config;
  }
  static PushId id(std::size_t trainer, std::size_t micro_batch, bool in_place = false) {
    return {.trainer = trainer,
            .incarnation = kProcess,
            .micro_batch = micro_batch,
            .in_place = in_place};
  }
  void push_in_place(std::size_t trainer, std::size_t micro_batch,
                     const std::shared_ptr<Values>& gradient) {
    const PushId push = id(trainer, micro_batch, /*in_place=*/true);
    ASSERT_EQ(shard_.admit(push).verdict, Verdict::kReceive);
    shard_.commit(push, {.gradient = *gradient, .memory = gradient});
  }

  Shard shard_{config(), {.begin = 0, .end = 2}};
};

TEST_F(ElasticShard, AddsWhatWasSentAndWhatLiesInPlace) {
  const auto first = std::make_shared<Values>(Values{3, 1});
  const auto last = std::make_shared<Values>(Values{9, 3});
  push_in_place(1, 2, last);
  push_in_place(1, 0, first);
  push(shard_, id(0, 1), Values{6, 2});
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-6, -2}));
  EXPECT_EQ(*first, (Values{3, 1}));
  EXPECT_EQ(*last, (Values{9, 3}));
  EXPECT_EQ(first.use_count() + last.use_count(), 2) << "not needed any more";
}

TEST_F(ElasticShard, ReadsNothingOfAMicroBatchThatAnotherTrainerHasPushed) {
  const auto gradient = std::make_shared<Values>(Values{3, 3});
  push_in_place(0, 1, gradient);
  EXPECT_EQ(shard_.admit(id(1, 1, /*in_place=*/true)).verdict, Verdict::kDiscard);
  EXPECT_EQ(shard_.admit(id(1, 1)).verdict, Verdict::kDiscard);
  EXPECT_EQ(shard_.counters().repeats, 2U);
  push(shard_, id(1, 0), Values{3, 3});
  push(shard_, id(1, 2), Values{3, 3});
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-3, -3}));
}

// Its body is in flight when another trainer's gradient is found in memory.
TEST_F(ElasticShard, KeepsTheGradientInPlaceThatCameBeforeTheEndOfOneThatIsSent) {
  const Admission sent = shard_.admit(id(0, 1));
  const auto gradient = std::make_shared<Values>(Values{3, 3});
  push_in_place(1, 1, gradient);
  fill(sent, Values{1000, 1000});
  shard_.commit(id(0, 1));
  push(shard_, id(1, 0), Values{3, 3});
  push(shard_, id(1, 2), Values{3, 3});
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-3, -3}));
}

// `make asan` detects an access to a slot that does not exist.
TEST(ElasticShardOfFewMicroBatches, TakesThemFromMoreTrainers) {
  RunConfig config = sgd_config(3);
  config.micro_batches = 1;
  Shard shard{config, {.begin = 0, .end = 2}};
  push(shard, {.trainer = 2, .incarnation = kProcess, .micro_batch = 0}, Values{3, 3});
  EXPECT_EQ(values_of(shard.parameters()), (Values{-3, -3}));
}

}  // namespace
}  // namespace disttf::roles
