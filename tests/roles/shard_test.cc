// Synchronous training where every gradient counts: which trainers are waited for, what counts
// once, and bit-identical steps for any order of arrival and any number of ps.
#include "roles/ps/core/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "math/aligned.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

class FullySynchronousShard : public testing::Test {
 protected:
  static constexpr std::size_t kTrainers = 3;
  Shard shard_{sgd_config(kTrainers), {.begin = 0, .end = 2}};
};

TEST_F(FullySynchronousShard, MakesAStepWhenTheLastGradientHasCome) {
  push(shard_, 0, 0, 3);
  push(shard_, 2, 0, 6);
  EXPECT_EQ(shard_.step(), 0U);
  push(shard_, 1, 0, 9);
  EXPECT_EQ(shard_.step(), 1U);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-6, -6}));
}

TEST_F(FullySynchronousShard, NamesWhoIsMissing) {
  EXPECT_EQ(shard_.policy().missing(), (std::vector<std::size_t>{0, 1, 2}));
  push(shard_, 1, 0, 1);
  EXPECT_EQ(shard_.policy().missing(), (std::vector<std::size_t>{0, 2}));
}

TEST_F(FullySynchronousShard, CountsTheGradientsThatAStepLacks) {
  EXPECT_EQ(shard_.policy().lacks(), 3U);
  push(shard_, 1, 0, 1);
  push(shard_, 0, 0, 1);
  EXPECT_EQ(shard_.policy().lacks(), 1U);
  push(shard_, 2, 0, 1);
  EXPECT_EQ(shard_.policy().lacks(), 3U);
}

TEST_F(FullySynchronousShard, AnswersNoTrainerBeforeTheStepIsMade) {
  push(shard_, 0, 0, 1);
  push(shard_, 1, 0, 1);
  EXPECT_FALSE(shard_.answerable(0));
  EXPECT_FALSE(shard_.answerable(1));
  push(shard_, 2, 0, 1);
  EXPECT_TRUE(shard_.answerable(0));
  EXPECT_TRUE(shard_.answerable(1));
  EXPECT_TRUE(shard_.answerable(2));
  EXPECT_EQ(shard_.answer(0).step, 1U);
}

TEST_F(FullySynchronousShard, RepeatBeforeTheStepIsNotAddedAndWaitsForTheStep) {
  push(shard_, 0, 0, 3);
  EXPECT_EQ(shard_.admit(sync_id(0, 0)).verdict, Verdict::kDiscard);
  EXPECT_FALSE(shard_.answerable(0));
  push(shard_, 1, 0, 3);
  push(shard_, 2, 0, 3);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-3, -3}));
  EXPECT_TRUE(shard_.answerable(0));
  EXPECT_EQ(shard_.counters().repeats, 1U);
}

TEST_F(FullySynchronousShard, RepeatAfterTheStepIsAnsweredAndNotAdded) {
  for (std::size_t trainer = 0; trainer < kTrainers; ++trainer) {
    push(shard_, trainer, 0, 3);
  }
  EXPECT_EQ(shard_.admit(sync_id(1, 0)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(shard_.answerable(1));
  const Answer answer = shard_.answer(1);
  EXPECT_EQ(answer.step, 1U);
  EXPECT_FALSE(answer.dropped);
  EXPECT_EQ(values_of(answer.parameters), (Values{-3, -3}));
  // The next step does not take it for that trainer's gradient, either.
  EXPECT_EQ(shard_.policy().missing(), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(shard_.counters().applied, 3U);
}

TEST_F(FullySynchronousShard, LateCopyOfAnOlderPushDoesNotAnswerTheNewest) {
  for (std::size_t trainer = 0; trainer < kTrainers; ++trainer) {
    push(shard_, trainer, 0, 3);
  }
  push(shard_, 1, 1, 3);
  EXPECT_EQ(shard_.admit(sync_id(1, 0)).verdict, Verdict::kDiscard);
  EXPECT_FALSE(shard_.answerable(1));
}

TEST_F(FullySynchronousShard, GradientsInPlaceAreReadThereAndLeftAlone) {
  std::array<Values, kTrainers> gradients = {Values{3, 1}, Values{6, 2}, Values{9, 3}};
  for (std::size_t trainer = 0; trainer < kTrainers; ++trainer) {
    const PushId id{.trainer = trainer, .incarnation = kProcess, .step = 0, .in_place = true};
    ASSERT_EQ(shard_.admit(id).verdict, Verdict::kReceive);
    shard_.commit(id, {.gradient = gradients.at(trainer), .memory = nullptr});
  }
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-6, -2}));
  EXPECT_EQ(gradients, (std::array<Values, kTrainers>{Values{3, 1}, Values{6, 2}, Values{9, 3}}));
}

// A trainer and its memory may be lost before the other gradients have come.
TEST_F(FullySynchronousShard, MemoryOfAGradientInPlaceIsKeptUntilTheStepIsMade) {
  const auto memory = std::make_shared<Values>(Values{3, 3});
  const PushId id{.trainer = 1, .incarnation = kProcess, .step = 0, .in_place = true};
  ASSERT_EQ(shard_.admit(id).verdict, Verdict::kReceive);
  shard_.commit(id, {.gradient = *memory, .memory = memory});
  EXPECT_EQ(memory.use_count(), 2);
  push(shard_, 0, 0, 3);
  push(shard_, 2, 0, 3);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-3, -3}));
  EXPECT_EQ(memory.use_count(), 1);
}

TEST_F(FullySynchronousShard, PushThatBrokeOffMidwayCanBePushedAgain) {
  push(shard_, 0, 0, 3);
  const Admission broken = shard_.admit(sync_id(1, 0));
  broken.destination[0] = 1000;  // half a body arrived before the connection was lost
  push(shard_, 2, 0, 3);
  EXPECT_EQ(shard_.step(), 0U);
  push(shard_, 1, 0, 3);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-3, -3}));
  EXPECT_EQ(shard_.counters().pushes, 3U);
}

TEST_F(FullySynchronousShard, RefusesAPushFromTheFuture) {
  const Admission admission = shard_.admit(sync_id(0, 4));
  EXPECT_EQ(admission.verdict, Verdict::kRefuse);
  EXPECT_EQ(admission.why, "a gradient for step 4 came while the parameters are at step 0");
}

TEST_F(FullySynchronousShard, GoesOnFromTheStepItIsRestoredAt) {
  restore(shard_, {10, 10}, 50);
  EXPECT_EQ(shard_.step(), 50U);
  EXPECT_EQ(shard_.admit(sync_id(0, 49)).verdict, Verdict::kDiscard);
  EXPECT_EQ(shard_.counters().dropped, 0U) << "what led to these parameters is in them";
  for (std::size_t trainer = 0; trainer < kTrainers; ++trainer) {
    push(shard_, trainer, 50, 3);
  }
  EXPECT_EQ(shard_.step(), 51U);
  EXPECT_EQ(values_of(shard_.parameters()), (Values{7, 7}));
}

TEST_F(FullySynchronousShard, RestoreForgetsGradientsOfAHalfMadeStep) {
  push(shard_, 0, 0, 1000);
  push(shard_, 1, 0, 1000);
  restore(shard_, {0, 0}, 0);
  for (std::size_t trainer = 0; trainer < kTrainers; ++trainer) {
    push(shard_, trainer, 0, 3);
  }
  EXPECT_EQ(values_of(shard_.parameters()), (Values{-3, -3}));
}

TEST_F(FullySynchronousShard, KeepsTheParametersFromBeforeTheNewestStep) {
  restore(shard_, {10, 10}, 50);
  EXPECT_FALSE(shard_.previous()) << "no step has been made since the restore";
  for (const std::uint64_t step : {50U, 51U}) {
    for (std::size_t trainer = 0; trainer < kTrainers; ++trainer) {
      push(shard_, trainer, step, 3);
    }
  }
  ASSERT_TRUE(shard_.previous());
  EXPECT_EQ(shard_.previous()->step, 51U);
  EXPECT_EQ(values_of(shard_.previous()->parameters), (Values{7, 7}));
  EXPECT_EQ(values_of(shard_.parameters()), (Values{4, 4}));
}

TEST_F(FullySynchronousShard, RestoreLeavesTheParametersOfTheLastAnswerAlone) {
  for (std::size_t trainer = 0; trainer < kTrainers; ++trainer) {
    push(shard_, trainer, 0, 3);
  }
  const Answer answer = shard_.answer(0);  // it may still be in flight to the trainer
  restore(shard_, {10, 10}, 50);
  EXPECT_EQ(values_of(answer.parameters), (Values{-3, -3}));
}

TEST_F(FullySynchronousShard, AsManyReplicasToAggregateAsTrainersIsTheFullySynchronousMode) {
  Shard shard(backup_config(kTrainers, kTrainers), {.begin = 0, .end = 1});
  push(shard, 0, 0, 3);
  push(shard, 1, 0, 3);
  EXPECT_EQ(shard.step(), 0U);
  push(shard, 2, 0, 3);
  EXPECT_EQ(shard.step(), 1U);
}

TEST(Shard, DiscardsAndAnswersOnceTheRunIsFinished) {
  Shard shard(sgd_config(1, /*train_steps=*/1), {.begin = 0, .end = 1});
  EXPECT_FALSE(shard.finished());
  push(shard, 0, 0, 2);
  EXPECT_TRUE(shard.finished());
  for (const std::uint64_t step : {0U, 1U, 9U}) {
    EXPECT_EQ(shard.admit(sync_id(0, step)).verdict, Verdict::kDiscard) << step;
    EXPECT_TRUE(shard.answerable(0)) << step;
  }
  EXPECT_TRUE(shard.answer(0).finished);
  EXPECT_EQ(values_of(shard.answer(0).parameters), (Values{-2}));
}

TEST(Shard, TheLearningRateFallsEvenlyOverTheRun) {
  RunConfig config = sgd_config(1, /*train_steps=*/4);
  config.rate_decay = math::RateDecay::kLinear;
  Shard shard(config, {.begin = 0, .end = 1});
  const Values after = {-1, -1.75F, -2.25F, -2.5F};  // with rates 1, 3/4, 1/2, 1/4
  for (std::uint64_t step = 0; step < after.size(); ++step) {
    push(shard, 0, step, 1);
    EXPECT_EQ(values_of(shard.parameters()), Values{after[step]}) << step;
  }
}

TEST(Shard, TheOptimizerCountsStepsFromOne) {
  RunConfig config = sgd_config(1);
  config.optimizer = {.kind = math::OptimizerKind::kAdam, .learning_rate = 0.1F};
  Shard shard(config, {.begin = 0, .end = 1});
  push(shard, 0, 0, 3);
  push(shard, 0, 1, 5);
  math::Optimizer optimizer(config.optimizer, 1, config.isa);
  Values expected = {0};
  optimizer.apply(expected, Values{3}, 1, /*step=*/1);
  optimizer.apply(expected, Values{5}, 1, /*step=*/2);
  EXPECT_EQ(values_of(shard.parameters()), expected);
}

// The model has sm_w at 0 and sm_b at 16. This ps has the last float of each.
TEST(Shard, WeightsDecayAndBiasesDoNot) {
  RunConfig config = sgd_config(1);
  config.model = {.kind = math::ModelKind::kSoftmax, .input = {.channels = 8}, .classes = 2};
  config.optimizer.weight_decay = 0.25F;
  Shard shard(config, {.begin = 15, .end = 17});
  std::ranges::fill(shard.parameters(), 4.0F);
  push(shard, sync_id(0, 0), Values{1, 1});
  EXPECT_EQ(values_of(shard.parameters()), (Values{4 - (1 + 1), 4 - 1}));
}

TEST(Shard, AnEmptyRangeGoesThroughTheSteps) {
  Shard shard(sgd_config(2), {.begin = 1024, .end = 1024});
  push(shard, 1, 0, 1);
  push(shard, 0, 0, 1);
  EXPECT_EQ(shard.step(), 1U);
  EXPECT_TRUE(shard.answerable(0));
  EXPECT_TRUE(shard.answer(0).parameters.empty());
}

// ---- bit-identical for any order of arrival and any division among the ps ----

// gradients[step][trainer], of widely different sizes, so that another order of additions changes
// the last bits.
std::vector<std::vector<Values>> random_gradients(std::size_t steps, std::size_t trainers,
                                                  std::size_t size) {
  std::mt19937 random(20240607);
  std::uniform_real_distribution<float> mantissa(-1.0F, 1.0F);
  std::uniform_int_distribution<int> exponent(-12, 4);
  std::vector<std::vector<Values>> gradients(steps, std::vector<Values>(trainers, Values(size)));
  for (auto& step : gradients) {
    for (auto& gradient : step) {
      std::generate(gradient.begin(), gradient.end(),
                    [&] { return std::ldexp(mantissa(random), exponent(random)); });
    }
  }
  return gradients;
}

class BitIdentical : public testing::TestWithParam<math::OptimizerKind> {
 protected:
  static constexpr std::size_t kTrainers = 5;  // with fewer than four the tree is a chain
  static constexpr std::size_t kSteps = 4;
  static constexpr std::size_t kSize = 4 * math::kShardAlignmentFloats + 32;

  static RunConfig config() {
    RunConfig config = sgd_config(kTrainers);
    config.optimizer.kind = GetParam();
    config.optimizer.learning_rate = 0.1F;
    config.optimizer.weight_decay = 0.1F;
    // Variables with weight decay and without, so that the ps' borders fall into both kinds.
    config.model = {.input = {.channels = 9}, .hidden = {100, 20, 60, 1}};
    config.rate_decay = math::RateDecay::kLinear;
    return config;
  }

  // Returns the parameters after all steps. `order_of(step)`: the trainers' order of arrival.
  template <typename OrderOf>
  std::vector<std::uint32_t> train(math::Range range, OrderOf order_of) const {
    Shard shard(config(), range);
    for (std::size_t step = 0; step < kSteps; ++step) {
      for (const std::size_t trainer : order_of(step)) {
        const std::span<const float> whole = gradients_[step][trainer];
        push(shard, sync_id(trainer, step), whole.subspan(range.begin, range.size()));
      }
    }
    EXPECT_EQ(shard.step(), kSteps);
    return bits_of(shard.parameters());
  }

  std::vector<std::vector<Values>> gradients_ = random_gradients(kSteps, kTrainers, kSize);
};

using Order = std::array<std::size_t, 5>;
constexpr Order kInOrder = {0, 1, 2, 3, 4};

TEST_P(BitIdentical, InEveryOrderOfArrival) {
  const math::Range range{.begin = 0, .end = kSize};
  const auto expected = train(range, [](std::size_t) { return kInOrder; });
  Order order = kInOrder;
  while (std::next_permutation(order.begin(), order.end())) {
    EXPECT_EQ(train(range, [&](std::size_t) { return order; }), expected)
        << testing::PrintToString(order);
  }
}

TEST_P(BitIdentical, WhenTheOrderChangesFromStepToStep) {
  const math::Range range{.begin = 0, .end = kSize};
  const std::array<Order, kSteps> orders = {
      {{4, 3, 2, 1, 0}, {1, 0, 3, 2, 4}, {0, 4, 2, 1, 3}, {2, 0, 3, 1, 4}}};
  EXPECT_EQ(train(range, [&](std::size_t step) { return orders[step]; }),
            train(range, [](std::size_t) { return kInOrder; }));
}

TEST_P(BitIdentical, OnAnyNumberOfPs) {
  const auto expected = train({.begin = 0, .end = kSize}, [](std::size_t) { return kInOrder; });
  // 7 is more than the number of pages: two ps have nothing.
  for (const std::size_t ps : {2U, 3U, 5U, 7U}) {
    std::vector<std::uint32_t> joined;
    for (std::size_t index = 0; index < ps; ++index) {
      const auto part = train(math::shard_range(kSize, index, ps), [&](std::size_t step) {
        return (step + index) % 2 == 0 ? kInOrder : Order{2, 0, 4, 1, 3};
      });
      joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_EQ(joined, expected) << ps;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, BitIdentical,
                         testing::Values(math::OptimizerKind::kSgd, math::OptimizerKind::kMomentum,
                                         math::OptimizerKind::kAdagrad, math::OptimizerKind::kAdam,
                                         math::OptimizerKind::kAdamw),
                         [](const auto& param_info) {
                           return std::string(math::optimizer_name(param_info.param));
                         });

// Trainers read the same parameters whether they were written with non-temporal stores
// (math/non_temporal_stores.h) or normal ones.

// Several pieces of a non-temporal update.
constexpr math::Range kStreamedRange{.begin = 0, .end = 5000};

Values streamed_gradient(std::size_t trainer, std::uint64_t step) {
  Values values(kStreamedRange.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 7 + trainer * 13 + step * 29) % 101) - 50.0F;
  }
  return values;
}

class ShardNonTemporalStores : public testing::TestWithParam<bool> {
 protected:
  static Shard shard_of(const RunConfig& config, bool streams) {
    const auto memory =
        std::make_shared<math::AlignedVector>(ShardStorage::arena_size(config, kStreamedRange));
    return Shard(config, kStreamedRange, 1,
                 {.floats = memory->span(), .owner = memory, .streams = streams});
  }
  [[nodiscard]] RunConfig config() const {
    RunConfig config = GetParam() ? sgd_config(2) : async_config(2);
    config.optimizer = {.kind = math::OptimizerKind::kAdam, .learning_rate = 0.01F};
    return config;
  }
};

TEST_P(ShardNonTemporalStores, AnswersBitIdentically) {
  std::array shards = {shard_of(config(), true), shard_of(config(), false)};
  for (std::uint64_t step = 0; step < 4; ++step) {
    for (std::size_t trainer = 0; trainer < 2; ++trainer) {
      const PushId id{.trainer = trainer,
                      .incarnation = kProcess,
                      .step = shards[0].step(),
                      .sequence = step + 1};
      for (Shard& shard : shards) {
        push(shard, id, streamed_gradient(trainer, step));
      }
    }
    for (std::size_t trainer = 0; trainer < 2; ++trainer) {
      EXPECT_EQ(bits_of(shards[0].answer(trainer).parameters),
                bits_of(shards[1].answer(trainer).parameters));
    }
  }
  EXPECT_GT(shards[0].step(), 0U);
}

// Until the copy takes over, only its own later updates read its updates; then it answers trainers.
TEST_P(ShardNonTemporalStores, OfACopyThatTakesOverAnswersBitIdentically) {
  std::array shards = {shard_of(config(), true), shard_of(config(), false)};
  for (Shard& shard : shards) {
    const Values told = streamed_gradient(0, 0);
    const std::vector<std::uint64_t> both = {GetParam() ? 3U : 1U};
    shard.take_update({.push = {.trainer = 0, .incarnation = kProcess, .sequence = 1},
                       .gradient = told,
                       .trainers = both});
    for (std::size_t trainer = 0; trainer < 2; ++trainer) {
      push(shard,
           {.trainer = trainer, .incarnation = kProcess, .step = shard.step(), .sequence = 2},
           streamed_gradient(trainer, 1));
    }
  }
  EXPECT_EQ(bits_of(shards[0].answer(1).parameters), bits_of(shards[1].answer(1).parameters));
}

INSTANTIATE_TEST_SUITE_P(Modes, ShardNonTemporalStores, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "sync" : "async"; });

}  // namespace
}  // namespace disttf::roles
