// Averaged parameters: they are part of the state, and only the result contains them.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

constexpr math::Range kOne{.begin = 0, .end = 1};

RunConfig averaged(RunConfig config) {
  config.optimizer.average_decay = 0.5F;
  return config;
}

// The average's weight d is 2/11 after the first step and 3/12 after the second, while the
// configured decay is larger.
float first_average(float before, float after) { return before - (9.0F / 11) * (before - after); }
float second_average(float before, float after) { return before - 0.75F * (before - after); }

float parameter_of(const Answer& answer) { return answer.parameters.front(); }

TEST(ShardAverage, IsTheResultAndTheParametersAreUntilThen) {
  Shard shard(averaged(sgd_config(1, /*train_steps=*/2)), kOne);
  restore(shard, {8}, 0);
  EXPECT_EQ(parameter_of(shard.answer(0)), 8);
  push(shard, 0, 0, 4);
  EXPECT_EQ(parameter_of(shard.answer(0)), 4);
  push(shard, 0, 1, 4);
  const Answer result = shard.answer(0);
  EXPECT_TRUE(result.finished);
  EXPECT_FLOAT_EQ(parameter_of(result), second_average(first_average(8, 4), 0));
  EXPECT_EQ(values_of(shard.parameters()), Values{0}) << "what training would go on from";
  ASSERT_TRUE(shard.previous().has_value());
  EXPECT_EQ(parameter_of(*shard.previous()), 4) << "what a lost trainer's gradient is made of";
}

TEST(ShardAverage, IsTheResultWhereTheRunEndsBeforeItsLastStep) {
  Shard shard(averaged(sgd_config(1, /*train_steps=*/2)), kOne);
  restore(shard, {8}, 0);
  push(shard, 0, 0, 4);
  shard.conclude();
  const Answer result = shard.answer(0);
  EXPECT_TRUE(result.finished);
  EXPECT_FLOAT_EQ(parameter_of(result), first_average(8, 4));
  EXPECT_EQ(values_of(shard.parameters()), Values{4});
}

TEST(ShardAverage, IsTheResultOfAsyncRunsAlsoWhereStepsAreMissing) {
  Shard shard(averaged(async_config(1, {}, /*train_steps=*/5)), kOne);
  restore(shard, {8}, 0);
  push(shard, {.trainer = 0, .incarnation = kProcess, .step = 0, .sequence = 1}, Values{4});
  EXPECT_EQ(parameter_of(shard.answer(0)), 4);
  EXPECT_FLOAT_EQ(parameter_of(shard.answer(0, /*is_result=*/true)), first_average(8, 4));
}

// The average continues after a snapshot shard is restored elsewhere.
TEST(ShardAverage, GoesOnFromASnapshotShard) {
  Shard shard(averaged(sgd_config(1, /*train_steps=*/2)), kOne);
  restore(shard, {8}, 0);
  push(shard, 0, 0, 4);
  EXPECT_EQ(shard.storage().state_names(), std::vector<std::string>{"average"});
  shard.want_snapshot(1, shard.step());
  const Values snapshot = values_of(shard.snapshot()->values.span());
  ASSERT_EQ(snapshot.size(), 2U);
  Shard other(averaged(sgd_config(1, /*train_steps=*/2)), kOne);
  const auto places = other.begin_restore(/*parameters_only=*/false);
  ASSERT_EQ(places.size(), 2U);
  places[0][0] = snapshot[0];
  places[1][0] = snapshot[1];
  other.finish_restore(1);
  push(shard, 0, 1, 4);
  push(other, 0, 1, 4);
  EXPECT_EQ(bits_of(other.answer(0).parameters), bits_of(shard.answer(0).parameters));
}

TEST(ShardAverage, BeginsWithTheParametersWhereAStateBringsNone) {
  Shard shard(averaged(sgd_config(1, /*train_steps=*/2)), kOne);
  restore(shard, {8}, 0);
  push(shard, 0, 0, 4);
  restore(shard, {6}, 2);
  EXPECT_EQ(parameter_of(shard.answer(0)), 6) << "the result, which the chief had in hand";
}

// A ps that was lost after the last step is restored to the result while replies with it may still
// be in flight.
TEST(ShardAverage, StaysWhereItIsThroughARestore) {
  Shard shard(averaged(sgd_config(1, /*train_steps=*/1)), kOne);
  restore(shard, {8}, 0);
  push(shard, 0, 0, 4);
  const Answer leaving = shard.answer(0);
  const float result = parameter_of(leaving);
  restore(shard, {100}, 0);
  push(shard, 0, 0, 4);
  EXPECT_EQ(parameter_of(leaving), result);
  EXPECT_NE(parameter_of(shard.answer(0)), result);
}

// Running statistics: the ps averages what trainers push of them as it averages gradients, in every
// mode, and moves the running values. Neither learning rate nor schedule affects them.

// The vector has batch_norm1_gamma at 0, _beta at 16, _mean at 32 and _variance at 48. This range
// has one float of each of the last two, and the padding between.
constexpr math::Range kRunning{.begin = 32, .end = 49};

RunConfig normalizing(RunConfig config) {
  config.model = {.input = {.channels = 1},
                  .classes = 2,
                  .layers = {{.type = "batch_norm", .name = {}, .fields = {{"momentum", 0.75}}},
                             {.type = "dense", .name = {}, .fields = {{"units", 2.0}}}}};
  config.optimizer.learning_rate = 0.125F;
  config.optimizer.weight_decay = 0.5F;
  config.rate_decay = math::RateDecay::kLinear;
  config.batch_size = 2;
  return config;
}

Values statistics(float mean, float variance) {
  Values values(kRunning.size());
  values.front() = mean;
  values.back() = variance;
  return values;
}

Values running_in(Shard& shard) { return values_of(shard.parameters()); }

TEST(ShardRunning, MovesByTheMeanOfAllTrainers) {
  Shard shard(normalizing(sgd_config(2)), kRunning);
  restore(shard, statistics(8, 4), 0);
  push(shard, sync_id(1, 0), statistics(1, 20));
  push(shard, sync_id(0, 0), statistics(3, 12));
  EXPECT_EQ(running_in(shard), statistics(6.5F, 7));  // 3/4 of 8 and 4, plus 1/4 of 2 and 16
  push(shard, sync_id(0, 1), statistics(2.5F, 7));
  push(shard, sync_id(1, 1), statistics(2.5F, 7));
  EXPECT_EQ(running_in(shard), statistics(5.5F, 7));
}

TEST(ShardRunning, MovesByTheMicroBatchesOfAnElasticStep) {
  RunConfig config = normalizing(sgd_config(1));
  config.micro_batches = 4;
  Shard shard(config, kRunning);
  restore(shard, statistics(8, 4), 0);
  for (const std::size_t micro_batch : {2U, 0U, 3U, 1U}) {
    push(shard, {.trainer = 0, .incarnation = kProcess, .micro_batch = micro_batch},
         statistics(static_cast<float>(micro_batch), 4));
  }
  EXPECT_EQ(running_in(shard), statistics(6.375F, 4));  // 3/4 of 8, plus 1/4 of 1.5
}

TEST(ShardRunning, MovesByTheTrainersThatAreNotDropped) {
  Shard shard(normalizing(backup_config(3, 2)), kRunning);
  restore(shard, statistics(8, 4), 0);
  push(shard, sync_id(2, 0), statistics(1, 4));
  push(shard, sync_id(0, 0), statistics(3, 4));
  EXPECT_EQ(running_in(shard), statistics(6.5F, 4));
}

TEST(ShardRunning, MovesWithEachPushWithoutSteps) {
  Shard shard(normalizing(async_config(2)), kRunning);
  restore(shard, statistics(8, 4), 0);
  push(shard, {.trainer = 1, .incarnation = kProcess, .sequence = 1}, statistics(4, 4));
  EXPECT_EQ(running_in(shard), statistics(7, 4));
  push(shard, {.trainer = 0, .incarnation = kProcess, .sequence = 1}, statistics(3, 8));
  EXPECT_EQ(running_in(shard), statistics(6, 5));
}

// Gamma and beta, which are trained, follow the optimizer, without weight decay.
TEST(ShardRunning, LeavesTheOthersToTheOptimizer) {
  constexpr math::Range kBetaAndMean{.begin = 16, .end = 33};
  Shard shard(normalizing(sgd_config(1)), kBetaAndMean);
  restore(shard, statistics(8, 8), 0);
  push(shard, sync_id(0, 0), statistics(4, 4));
  EXPECT_EQ(running_in(shard), statistics(8 - 0.125F * 4, 7));
}

// Snapshot shards: the state of a shard at one step boundary, kept while training continues; and
// the result of a run that continues from one.

constexpr std::size_t kSize = 3;

PushId asked(std::size_t trainer, std::uint64_t step, bool wants_snapshot = false) {
  return {.trainer = trainer,
          .incarnation = kProcess,
          .step = step,
          .sequence = step + 1,
          .wants_snapshot = wants_snapshot};
}

void make_step(Shard& shard, std::uint64_t step, bool wants_snapshot = false) {
  for (std::size_t trainer = 0; trainer < kTwoTrainers; ++trainer) {
    push(shard, asked(trainer, step, wants_snapshot && trainer == 0), three_values(trainer, step));
  }
}

RunConfig config_of(math::OptimizerKind optimizer) {
  RunConfig config = sgd_config(kTwoTrainers);
  config.optimizer.kind = optimizer;
  return config;
}

class ShardSnapshot : public testing::TestWithParam<math::OptimizerKind> {
 protected:
  Shard shard_{config_of(GetParam()), {.begin = 0, .end = kSize}};
};

TEST_P(ShardSnapshot, AnotherShardThatGoesOnFromItComesToBitIdenticalResults) {
  make_step(shard_, 0);
  make_step(shard_, 1, /*wants_snapshot=*/true);
  const std::shared_ptr<const SnapshotShard> snapshot = shard_.snapshot();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->step, 2U);
  EXPECT_EQ(snapshot->sequence, 2U);
  ASSERT_EQ(snapshot->values.size(), shard_.storage().state_size());
  make_step(shard_, 2);
  make_step(shard_, 3);

  Shard other(config_of(GetParam()), {.begin = 0, .end = kSize});
  make_step(other, 0);  // its earlier contents must not matter
  const float* from = snapshot->values.data();
  for (const std::span<float> place : other.begin_restore(/*parameters_only=*/false)) {
    std::copy_n(from, place.size(), place.begin());
    from += place.size();
  }
  other.finish_restore(snapshot->step);
  make_step(other, 2);
  make_step(other, 3);
  EXPECT_EQ(bits_of(other.parameters()), bits_of(shard_.parameters()));
}

TEST_P(ShardSnapshot, RestoredParametersAloneBeginWithANewOptimizer) {
  make_step(shard_, 0);
  Shard fresh(config_of(GetParam()), {.begin = 0, .end = kSize});
  restore(fresh, {1, 2, 3}, 1);
  restore(shard_, {1, 2, 3}, 1);
  make_step(fresh, 1);
  make_step(shard_, 1);
  EXPECT_EQ(bits_of(shard_.parameters()), bits_of(fresh.parameters()));
}

// Three floats of each tensor, copied two at a time: a step or a reader may come at any moment.
TEST_P(ShardSnapshot, IsOfItsStepHoweverMuchOfItWasCopiedWhenTheNextOneIsMade) {
  make_step(shard_, 0);
  make_step(shard_, 1, /*wants_snapshot=*/true);
  const std::vector<std::uint32_t> whole = bits_of(shard_.snapshot()->values.span());
  for (std::size_t copied = 0; copied <= shard_.storage().state_size() / 2 + 1; ++copied) {
    Shard other(config_of(GetParam()), {.begin = 0, .end = kSize});
    make_step(other, 0);
    make_step(other, 1, /*wants_snapshot=*/true);
    for (std::size_t piece = 0; piece < copied; ++piece) {
      EXPECT_EQ(other.copy_snapshot(2), 2 * piece < other.storage().state_size());
    }
    make_step(other, 2);
    EXPECT_FALSE(other.copy_snapshot(2)) << "nothing of the old state is there any more";
    EXPECT_EQ(bits_of(other.snapshot()->values.span()), whole) << copied << " pieces";
  }
}

TEST_P(ShardSnapshot, WithAReaderIsLeftAsItIs) {
  make_step(shard_, 0, /*wants_snapshot=*/true);
  const std::shared_ptr<const SnapshotShard> first = shard_.snapshot();
  const std::vector<std::uint32_t> bits = bits_of(first->values.span());
  make_step(shard_, 1, /*wants_snapshot=*/true);
  EXPECT_EQ(shard_.snapshot()->step, 2U);
  EXPECT_EQ(first->step, 1U);
  EXPECT_EQ(bits_of(first->values.span()), bits);
}

TEST_P(ShardSnapshot, AnotherOneReusesMemoryWithoutReaders) {
  make_step(shard_, 0, /*wants_snapshot=*/true);
  const float* const place = shard_.snapshot()->values.data();
  make_step(shard_, 1, /*wants_snapshot=*/true);
  EXPECT_EQ(shard_.snapshot()->values.data(), place);
  EXPECT_EQ(values_of(shard_.snapshot()->values.span().first(kSize)),
            values_of(shard_.parameters()));
}

INSTANTIATE_TEST_SUITE_P(OfOptimizer, ShardSnapshot,
                         testing::Values(math::OptimizerKind::kSgd, math::OptimizerKind::kMomentum,
                                         math::OptimizerKind::kAdagrad, math::OptimizerKind::kAdam,
                                         math::OptimizerKind::kAdamw),
                         [](const auto& test) {
                           return std::string(math::optimizer_name(test.param));
                         });

TEST(ShardSnapshotOf, AStepThatWasNotRequestedIsNotKept) {
  Shard shard(sgd_config(kTwoTrainers), {.begin = 0, .end = kSize});
  make_step(shard, 0);
  EXPECT_FALSE(shard.snapshot());
}

TEST(ShardSnapshotOf, ARestoreForgetsIt) {
  Shard shard(sgd_config(kTwoTrainers), {.begin = 0, .end = kSize});
  make_step(shard, 0, /*wants_snapshot=*/true);
  ASSERT_TRUE(shard.snapshot());
  restore(shard, {0, 0, 0}, 7);
  EXPECT_FALSE(shard.snapshot()) << "it is of a state that is no more";
}

TEST(ShardSnapshotOf, OneThatIsHalfCopiedIsWholeWhileTheStateIsReplaced) {
  Shard shard(sgd_config(kTwoTrainers), {.begin = 0, .end = kSize});
  make_step(shard, 0, /*wants_snapshot=*/true);
  const Values before = values_of(shard.parameters());
  shard.copy_snapshot(1);
  for (const std::span<float> place : shard.begin_restore(/*parameters_only=*/false)) {
    std::ranges::fill(place, 7.0F);
  }
  EXPECT_EQ(values_of(shard.snapshot()->values.span().first(kSize)), before);
}

TEST(ShardSnapshotOf, ALateGradientOfABackupWorkerIsTheStateAsItIs) {
  Shard shard(backup_config(2, 1), {.begin = 0, .end = kSize});
  push(shard, asked(1, 0), three_values(1, 0));
  EXPECT_EQ(shard.admit(asked(0, 0, /*wants_snapshot=*/true)).verdict, Verdict::kDiscard);
  ASSERT_TRUE(shard.snapshot());
  EXPECT_EQ(shard.snapshot()->step, 1U);
}

TEST(ShardSnapshotOf, AnAsynchronousPushIsTheStateItLeadsTo) {
  Shard shard(async_config(2), {.begin = 0, .end = kSize});
  push(shard, asked(1, 0), three_values(1, 0));
  push(shard, asked(0, 1, /*wants_snapshot=*/true), three_values(0, 1));
  ASSERT_TRUE(shard.snapshot());
  EXPECT_EQ(shard.snapshot()->step, 2U);
  EXPECT_EQ(values_of(shard.snapshot()->values.span()), values_of(shard.parameters()));
}

}  // namespace
}  // namespace disttf::roles
