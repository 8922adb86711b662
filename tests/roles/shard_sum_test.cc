// A sum that replaces several trainers' gradients: steps are bit-identical, each trainer counts
// once, and the right trainers are waited for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "math/tree_sum.h"
#include "net/wire/replication.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kFloats = 21;  // not a multiple of a vector register's size

PushId sum_id(std::size_t first, std::size_t count, std::uint64_t step = 0) {
  return {.trainer = first, .incarnation = kProcess, .step = step, .summed = count};
}
PushId in_sum_id(std::size_t trainer, std::uint64_t step = 0) {
  return {.trainer = trainer, .incarnation = kProcess, .step = step, .is_in_sum = true};
}

// The number of trainers: four, or six, whose tree has an incomplete subtree at its end.
class ShardSum : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static std::size_t trainers() { return GetParam(); }

  // Gradients of widely different sizes, so that another order of additions changes the last bits.
  [[nodiscard]] static std::vector<Values> random_gradients() {
    std::mt19937 random(20261127);
    std::uniform_real_distribution<float> mantissa(-1.0F, 1.0F);
    std::uniform_int_distribution<int> exponent(-12, 4);
    std::vector<Values> gradients(trainers(), Values(kFloats));
    for (Values& gradient : gradients) {
      std::ranges::generate(gradient,
                            [&] { return std::ldexp(mantissa(random), exponent(random)); });
    }
    return gradients;
  }

  // The sum that the leader of these trainers computes.
  [[nodiscard]] Values sum_of(std::size_t first, std::size_t count) const {
    math::TreeSum sum(count, kFloats, math::Isa::kGeneric);
    for (std::size_t each = 0; each < count; ++each) {
      sum.add(each, gradients_[first + each], {});
    }
    return values_of(sum.whole());
  }
  void push_own(std::size_t trainer, std::uint64_t step = 0) {
    push(shard_, sync_id(trainer, step), gradients_[trainer]);
  }
  void push_sum(std::size_t first, std::size_t count, std::uint64_t step = 0) {
    push(shard_, sum_id(first, count, step), sum_of(first, count));
  }
  // The trainers from rank 4 on, which belong to no group, push their own gradients.
  void push_the_others(std::uint64_t step = 0) {
    for (std::size_t trainer = 4; trainer < trainers(); ++trainer) {
      push_own(trainer, step);
    }
  }

  // The bits of the parameters after so many steps in which each trainer pushes its own gradient.
  [[nodiscard]] std::vector<std::uint32_t> bits_after(std::uint64_t steps) const {
    Shard shard(sgd_config(trainers()), range_);
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (std::size_t trainer = 0; trainer < trainers(); ++trainer) {
        push(shard, sync_id(trainer, step), gradients_[trainer]);
      }
    }
    return bits_of(shard.parameters());
  }
  void expect_steps(std::uint64_t steps) {
    ASSERT_EQ(shard_.step(), steps);
    EXPECT_EQ(bits_of(shard_.parameters()), bits_after(steps));
    EXPECT_EQ(shard_.counters().applied, steps * trainers());
    EXPECT_EQ(shard_.counters().dropped, 0U);
  }

  const math::Range range_{.begin = 0, .end = kFloats};
  const std::vector<Values> gradients_ = random_gradients();
  Shard shard_{sgd_config(trainers()), range_};
};
INSTANTIATE_TEST_SUITE_P(Trainers, ShardSum, testing::Values(4, 6),
                         testing::PrintToStringParamName());

TEST_P(ShardSum, OfPairsIsBitIdentical) {
  std::uint64_t step = 0;
  for (std::size_t turn = 0; turn < 3; ++turn, ++step) {
    for (std::size_t pair = 0; pair < trainers() / 2; ++pair) {  // another one is first each time
      push_sum((2 * pair + 2 * turn) % trainers(), 2, step);
    }
  }
  expect_steps(3);
  EXPECT_EQ(shard_.counters().pushes, 3 * trainers()) << "each trainer once";
}

TEST_P(ShardSum, OfFourIsBitIdentical) {
  push_sum(0, 4);
  push_the_others();
  push_the_others(1);
  push_sum(0, 4, 1);
  expect_steps(2);
  EXPECT_EQ(shard_.counters().pushes, 2 * trainers());
}

TEST_P(ShardSum, OfAllMakesTheStepAlone) {
  for (const std::uint64_t step : {0U, 1U, 2U}) {
    push_sum(0, trainers(), step);
  }
  expect_steps(3);
  EXPECT_EQ(shard_.counters().pushes, 3 * trainers());
  EXPECT_EQ(shard_.counters().repeats, 0U);
}

// One pair's leader pushes the sum; the other pair's trainers push their own gradients, in any
// order.
TEST_P(ShardSum, BesideGradientsIsBitIdentical) {
  std::vector<std::size_t> order(trainers() - 1);  // 2: the sum of 2 and 3
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::for_each(order, [](std::size_t& each) { each += each > 2 ? 1 : 0; });
  std::uint64_t step = 0;
  do {
    for (const std::size_t each : order) {
      each == 2 ? push_sum(2, 2, step) : push_own(each, step);
    }
    ++step;
  } while (std::next_permutation(order.begin(), order.end()) && step < 30);
  EXPECT_EQ(shard_.step(), step);
  EXPECT_EQ(bits_of(shard_.parameters()), bits_after(step));
  EXPECT_EQ(shard_.counters().pushes, step * trainers());
}

TEST_P(ShardSum, TakesThePlaceOfGradientsThatHaveComeBefore) {
  std::uint64_t step = 0;
  // The trainers whose gradients came before, as bits.
  for (unsigned before = 0; before < 15; ++before, ++step) {
    for (std::size_t trainer = 0; trainer < 4; ++trainer) {
      if ((before >> trainer & 1U) != 0) {
        push_own(trainer, step);
      }
    }
    push_sum(0, 4, step);
    push_the_others(step);
    EXPECT_EQ(shard_.step(), step + 1) << before;
  }
  expect_steps(step);
  EXPECT_EQ(shard_.counters().pushes, step * trainers()) << "each trainer once";
  EXPECT_EQ(shard_.counters().repeats, 0U);
}

// The shard must not write to their memory.
TEST_P(ShardSum, TakesThePlaceOfGradientsThatLieInTheirTrainersMemory) {
  const std::vector<Values> before = gradients_;
  const auto memory = std::make_shared<int>();
  for (const std::size_t trainer : {0U, 1U, 3U}) {
    PushId id = sync_id(trainer, 0);
    id.in_place = true;
    ASSERT_EQ(shard_.admit(id).verdict, Verdict::kReceive);
    shard_.commit(id, {.gradient = gradients_[trainer], .memory = memory});
  }
  push_sum(0, 4);
  push_the_others();
  expect_steps(1);
  EXPECT_EQ(gradients_, before);
  EXPECT_EQ(memory.use_count(), 1) << "it is not kept beyond the step";
}

// The sum may come after its trainer's own gradient, which lay there, too.
TEST_P(ShardSum, InPlaceIsReadThereAndLeftAlone) {
  for (const bool own_comes_before : {false, true}) {
    const std::uint64_t step = shard_.step();
    const auto memory = std::make_shared<Values>(sum_of(0, 4));
    const auto own = std::make_shared<Values>(gradients_[0]);
    PushId id = sync_id(0, step);
    id.in_place = true;
    if (own_comes_before) {
      ASSERT_EQ(shard_.admit(id).verdict, Verdict::kReceive);
      shard_.commit(id, {.gradient = *own, .memory = own});
    }
    id.summed = 4;
    ASSERT_EQ(shard_.admit(id).verdict, Verdict::kReceive);
    shard_.commit(id, {.gradient = *memory, .memory = memory});
    EXPECT_EQ(memory.use_count(), trainers() == 4 ? 1 : 2);
    EXPECT_EQ(own.use_count(), 1);
    push_the_others(step);
    EXPECT_EQ(memory.use_count(), 1) << "it is not kept beyond the step";
    EXPECT_EQ(*memory, sum_of(0, 4));
  }
  expect_steps(2);
  EXPECT_EQ(shard_.counters().pushes, 2 * trainers());
}

TEST_P(ShardSum, InPlaceIsKeptWhenAGradientThatItOvertookHasCome) {
  const Admission slow = shard_.admit(sync_id(0, 0));
  const auto memory = std::make_shared<Values>(sum_of(0, 2));
  PushId id = sum_id(0, 2);
  id.in_place = true;
  ASSERT_EQ(shard_.admit(id).verdict, Verdict::kReceive);
  shard_.commit(id, {.gradient = *memory, .memory = memory});
  fill(slow, gradients_[0]);
  shard_.commit(sync_id(0, 0));
  EXPECT_EQ(memory.use_count(), 2);
  push_sum(2, 2);
  push_the_others();
  expect_steps(1);
}

TEST_P(ShardSum, AfterAllOfItsGradientsIsARepeat) {
  for (const std::size_t trainer : {2U, 0U, 3U, 1U}) {
    push_own(trainer);
  }
  EXPECT_EQ(shard_.admit(sum_id(0, 4)).verdict, Verdict::kDiscard);
  EXPECT_EQ(shard_.counters().repeats, 1U);
  push_the_others();
  expect_steps(1);
  EXPECT_EQ(shard_.admit(sum_id(0, 4)).verdict, Verdict::kDiscard) << "nor at a later step";
  EXPECT_EQ(shard_.counters().repeats, 2U);
  EXPECT_TRUE(shard_.answerable(0));
}

TEST_P(ShardSum, ThatComesAgainIsARepeat) {
  push_sum(2, 2);
  EXPECT_EQ(shard_.admit(sum_id(2, 2)).verdict, Verdict::kDiscard);
  EXPECT_EQ(shard_.counters().repeats, 1U);
  push_sum(0, 2);
  push_the_others();
  expect_steps(1);
}

// A trainer whose leader is lost cannot tell whether the ps has the sum.
TEST_P(ShardSum, AGradientThatComesAfterItsSumIsARepeat) {
  push_sum(0, 4);
  for (const std::size_t trainer : {0U, 3U}) {
    EXPECT_EQ(shard_.admit(sync_id(trainer, 0)).verdict, Verdict::kDiscard);
  }
  EXPECT_EQ(shard_.counters().repeats, 2U);
  push_the_others();
  expect_steps(1);
  EXPECT_EQ(shard_.counters().pushes, trainers());
}

TEST_P(ShardSum, AGradientThatItsSumOvertakesIsNotAddedToIt) {
  const Admission slow = shard_.admit(sync_id(1, 0));
  push_sum(0, 4);
  fill(slow, gradients_[1]);
  shard_.commit(sync_id(1, 0));
  EXPECT_EQ(shard_.counters().repeats, 1U);
  push_the_others();
  if (trainers() == 4) {
    EXPECT_EQ(shard_.step(), 1U) << "with the sum";
  }
  expect_steps(1);
  push_sum(0, 4, 1);
  push_the_others(1);
  expect_steps(2);
}

// The destination belongs to a later step by then.
TEST_P(ShardSum, AGradientThatItsStepOvertakesChangesNothing) {
  const Admission slow = shard_.admit(sync_id(1, 0));
  const Admission slow_leader = shard_.admit(sync_id(0, 0));
  push_sum(0, 4);
  push_the_others();
  for (const std::size_t trainer : {2U, 3U}) {
    push_own(trainer, 1);
  }
  fill(slow, Values(kFloats, 1000));
  shard_.commit(sync_id(1, 0));
  fill(slow_leader, Values(kFloats, 1000));
  shard_.commit(sync_id(0, 0));
  EXPECT_EQ(shard_.counters().repeats, 2U);
  EXPECT_EQ(shard_.step(), 1U);
  push_sum(0, 2, 1);
  push_the_others(1);
  expect_steps(2);
}

TEST_P(ShardSum, ThatItsGradientsOvertakeIsARepeatAndTheStepIsMadeOnce) {
  const Admission slow = shard_.admit(sum_id(0, 4));
  for (std::size_t trainer = 0; trainer < 4; ++trainer) {
    push_own(trainer);
  }
  push_the_others();
  fill(slow, Values(kFloats, 1000));
  shard_.commit(sum_id(0, 4));
  EXPECT_EQ(shard_.counters().repeats, 1U);
  expect_steps(1);
  push_sum(0, 4, 1);
  push_the_others(1);
  expect_steps(2);
}

// The same before the step is made, since other gradients are missing.
TEST_P(ShardSum, ThatItsGradientsOvertakeIsNotAddedToThem) {
  const Admission slow = shard_.admit(sum_id(0, 2));
  push_own(0);
  push_own(1);
  fill(slow, Values(kFloats, 1000));
  shard_.commit(sum_id(0, 2));
  EXPECT_EQ(shard_.counters().repeats, 1U);
  EXPECT_EQ(shard_.step(), 0U);
  push_sum(2, 2);
  push_the_others();
  expect_steps(1);
}

TEST_P(ShardSum, ThatBrokeOffMidwayLeavesWhatHasCome) {
  push_own(0);
  const Admission broken = shard_.admit(sum_id(0, 4));
  broken.destination[0] = 1000;  // half a body arrived before the connection was lost
  for (const std::size_t trainer : {1U, 2U, 3U}) {
    push_own(trainer);
  }
  push_the_others();
  expect_steps(1);
}

TEST_P(ShardSum, ATrainerWhoseGradientIsInItIsNotMissing) {
  push_sum(2, 2);
  std::vector<std::size_t> missing = shard_.policy().missing();
  missing.resize(2);
  EXPECT_EQ(missing, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(shard_.policy().lacks(), trainers() - 2);
  push_own(1);
  EXPECT_EQ(shard_.policy().missing().front(), 0U);
  push_sum(0, 2);
  EXPECT_EQ(shard_.step(), trainers() == 4 ? 1U : 0U);
}

TEST_P(ShardSum, ATrainerWhoseGradientIsInItIsAnsweredWhenTheStepHasBeenMade) {
  EXPECT_EQ(shard_.admit(in_sum_id(1)).verdict, Verdict::kDiscard) << "it has no body";
  EXPECT_FALSE(shard_.answerable(1));
  EXPECT_EQ(shard_.policy().missing().size(), trainers()) << "it is its leader that brings it";
  push_sum(0, 4);
  EXPECT_EQ(shard_.admit(in_sum_id(2)).verdict, Verdict::kDiscard);
  EXPECT_EQ(shard_.answerable(1), trainers() == 4);
  push_the_others();
  EXPECT_EQ(shard_.admit(in_sum_id(3)).verdict, Verdict::kDiscard) << "the slowest one";
  for (const std::size_t trainer : {1U, 2U, 3U}) {
    EXPECT_TRUE(shard_.answerable(trainer));
    EXPECT_FALSE(shard_.answer(trainer).dropped);
  }
  EXPECT_EQ(shard_.counters().repeats, 0U) << "none has been sent twice";
  expect_steps(1);
  EXPECT_EQ(shard_.admit(in_sum_id(1, 1)).verdict, Verdict::kDiscard);
  EXPECT_FALSE(shard_.answerable(1)) << "of the next step";
}

TEST_P(ShardSum, ATrainerMayPushByItselfAfterItHasSaidThatItIsInOne) {
  EXPECT_EQ(shard_.admit(in_sum_id(1)).verdict, Verdict::kDiscard);
  for (std::size_t trainer = 0; trainer < trainers(); ++trainer) {
    push_own(trainer);
  }
  expect_steps(1);
}

TEST_P(ShardSum, OfAStepToComeIsRefused) {
  EXPECT_EQ(shard_.admit(sum_id(0, 4, 1)).verdict, Verdict::kRefuse);
  EXPECT_EQ(shard_.admit(in_sum_id(1, 1)).verdict, Verdict::kRefuse);
}

// Otherwise a copy of the shard would not recognize their repeats.
TEST_P(ShardSum, AnUpdateNamesAllWhoseGradientsAreInIt) {
  std::vector<std::uint64_t> told;
  Values sum;
  shard_.on_update([&](const ShardUpdate& update) {
    told.assign(update.trainers.begin(), update.trainers.end());
    sum = values_of(update.gradient);
  });
  push_own(1);
  push_sum(0, 4);
  push_the_others();
  EXPECT_EQ(told, std::vector<std::uint64_t>{(std::uint64_t{1} << trainers()) - 1});
  EXPECT_EQ(bits_of(sum), bits_of(sum_of(0, trainers())));
  expect_steps(1);
}

TEST_P(ShardSum, OfTheLastStepIsTakenOnceAsAnyOther) {
  shard_ = Shard(sgd_config(trainers(), /*train_steps=*/1), range_);
  const Admission slow = shard_.admit(sync_id(1, 0));
  push_sum(0, 4);
  push_the_others();
  EXPECT_TRUE(shard_.finished());
  fill(slow, gradients_[1]);
  shard_.commit(sync_id(1, 0));
  EXPECT_EQ(shard_.admit(sum_id(0, 4)).verdict, Verdict::kDiscard);
  EXPECT_EQ(shard_.admit(in_sum_id(3)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(shard_.answerable(3));
  expect_steps(1);
}

TEST_P(ShardSum, ThatComesWhenTheRunHasBeenConcludedChangesNothing) {
  const Admission slow = shard_.admit(sum_id(0, 4));
  push_own(0);
  shard_.conclude();
  fill(slow, sum_of(0, 4));
  shard_.commit(sum_id(0, 4));
  EXPECT_EQ(shard_.step(), 0U);
  EXPECT_EQ(values_of(shard_.parameters()), Values(kFloats));
  EXPECT_EQ(shard_.admit(in_sum_id(1)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(shard_.answerable(1));
}

TEST_P(ShardSum, RestoreForgetsOneOfAHalfMadeStep) {
  push_sum(2, 2);
  restore(shard_, Values(kFloats), 0);
  EXPECT_EQ(shard_.policy().missing().size(), trainers());
  push_sum(0, 2);
  push_sum(2, 2);
  push_the_others();
  EXPECT_EQ(shard_.step(), 1U);
  EXPECT_EQ(bits_of(shard_.parameters()), bits_after(1));
}

TEST_P(ShardSum, IsCheckedForItsNumbersWhileItWouldBeUsed) {
  Shard shard(sgd_config(trainers()), {.begin = 0, .end = 1});
  const Values bad{std::numeric_limits<float>::quiet_NaN()};
  static_cast<void>(shard.admit(sum_id(0, 2)));
  EXPECT_FALSE(shard.fault_in(sum_id(0, 2), Values{2}));
  EXPECT_TRUE(shard.fault_in(sum_id(0, 2), bad));
  EXPECT_EQ(shard.counters().bad, 1U);
  push(shard, 0, 0, 1);
  EXPECT_TRUE(shard.fault_in(sum_id(0, 2), bad)) << "it would be used still";
  push(shard, 1, 0, 1);
  EXPECT_FALSE(shard.fault_in(sum_id(0, 2), bad)) << "it has been overtaken";
}

}  // namespace
}  // namespace disttf::roles
