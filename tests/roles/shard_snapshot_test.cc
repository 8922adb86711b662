// Snapshot shards: the state of a shard at one step boundary, kept while training continues; and
// the result of a run that continues from one.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kSize = 3;

PushId id(std::size_t trainer, std::uint64_t step, bool wants_snapshot = false) {
  return {.trainer = trainer,
          .incarnation = kProcess,
          .step = step,
          .sequence = step + 1,
          .wants_snapshot = wants_snapshot};
}

void make_step(Shard& shard, std::uint64_t step, bool wants_snapshot = false) {
  for (std::size_t trainer = 0; trainer < kTwoTrainers; ++trainer) {
    push(shard, id(trainer, step, wants_snapshot && trainer == 0), three_values(trainer, step));
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
  push(shard, id(1, 0), three_values(1, 0));
  EXPECT_EQ(shard.admit(id(0, 0, /*wants_snapshot=*/true)).verdict, Verdict::kDiscard);
  ASSERT_TRUE(shard.snapshot());
  EXPECT_EQ(shard.snapshot()->step, 1U);
}

TEST(ShardSnapshotOf, AnAsynchronousPushIsTheStateItLeadsTo) {
  Shard shard(async_config(2), {.begin = 0, .end = kSize});
  push(shard, id(1, 0), three_values(1, 0));
  push(shard, id(0, 1, /*wants_snapshot=*/true), three_values(0, 1));
  ASSERT_TRUE(shard.snapshot());
  EXPECT_EQ(shard.snapshot()->step, 2U);
  EXPECT_EQ(values_of(shard.snapshot()->values.span()), values_of(shard.parameters()));
}

}  // namespace
}  // namespace disttf::roles
