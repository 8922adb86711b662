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

PushId id(std::size_t trainer, std::uint64_t step, bool wants_cut = false) {
  return {.trainer = trainer,
          .incarnation = kProcess,
          .step = step,
          .sequence = step + 1,
          .wants_cut = wants_cut};
}

void make_step(Shard& shard, std::uint64_t step, bool wants_cut = false) {
  for (std::size_t trainer = 0; trainer < kTwoTrainers; ++trainer) {
    push(shard, id(trainer, step, wants_cut && trainer == 0), three_values(trainer, step));
  }
}

RunConfig config_of(math::OptimizerKind optimizer) {
  RunConfig config = sgd_config(kTwoTrainers);
  config.optimizer.kind = optimizer;
  return config;
}

class ShardCut : public testing::TestWithParam<math::OptimizerKind> {
 protected:
  Shard shard_{config_of(GetParam()), {.begin = 0, .end = kSize}};
};

TEST_P(ShardCut, AnotherShardThatGoesOnFromItComesToTheSameBits) {
  make_step(shard_, 0);
  make_step(shard_, 1, /*wants_cut=*/true);
  const std::shared_ptr<const Cut> cut = shard_.cut();
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->step, 2U);
  EXPECT_EQ(cut->sequence, 2U);
  ASSERT_EQ(cut->values.size(), shard_.state_size());
  make_step(shard_, 2);
  make_step(shard_, 3);

  Shard other(config_of(GetParam()), {.begin = 0, .end = kSize});
  make_step(other, 0);  // its earlier contents must not matter
  const float* from = cut->values.data();
  for (const std::span<float> place : other.begin_restore(/*parameters_only=*/false)) {
    std::copy_n(from, place.size(), place.begin());
    from += place.size();
  }
  other.finish_restore(cut->step);
  make_step(other, 2);
  make_step(other, 3);
  EXPECT_EQ(bits_of(other.parameters()), bits_of(shard_.parameters()));
}

TEST_P(ShardCut, RestoredParametersAloneBeginWithANewOptimizer) {
  make_step(shard_, 0);
  Shard fresh(config_of(GetParam()), {.begin = 0, .end = kSize});
  restore(fresh, {1, 2, 3}, 1);
  restore(shard_, {1, 2, 3}, 1);
  make_step(fresh, 1);
  make_step(shard_, 1);
  EXPECT_EQ(bits_of(shard_.parameters()), bits_of(fresh.parameters()));
}

// Three floats of each tensor, copied two at a time: a step or a reader may come at any moment.
TEST_P(ShardCut, IsOfItsStepHoweverMuchOfItWasCopiedWhenTheNextOneIsMade) {
  make_step(shard_, 0);
  make_step(shard_, 1, /*wants_cut=*/true);
  const std::vector<std::uint32_t> whole = bits_of(shard_.cut()->values.span());
  for (std::size_t copied = 0; copied <= shard_.state_size() / 2 + 1; ++copied) {
    Shard other(config_of(GetParam()), {.begin = 0, .end = kSize});
    make_step(other, 0);
    make_step(other, 1, /*wants_cut=*/true);
    for (std::size_t piece = 0; piece < copied; ++piece) {
      EXPECT_EQ(other.copy_cut(2), 2 * piece < other.state_size());
    }
    make_step(other, 2);
    EXPECT_FALSE(other.copy_cut(2)) << "nothing of the old state is there any more";
    EXPECT_EQ(bits_of(other.cut()->values.span()), whole) << copied << " pieces";
  }
}

TEST_P(ShardCut, ThatSomebodyStillReadsIsLeftAsItIs) {
  make_step(shard_, 0, /*wants_cut=*/true);
  const std::shared_ptr<const Cut> first = shard_.cut();
  const std::vector<std::uint32_t> bits = bits_of(first->values.span());
  make_step(shard_, 1, /*wants_cut=*/true);
  EXPECT_EQ(shard_.cut()->step, 2U);
  EXPECT_EQ(first->step, 1U);
  EXPECT_EQ(bits_of(first->values.span()), bits);
}

TEST_P(ShardCut, AnotherOneLiesInTheMemoryThatNobodyReads) {
  make_step(shard_, 0, /*wants_cut=*/true);
  const float* const place = shard_.cut()->values.data();
  make_step(shard_, 1, /*wants_cut=*/true);
  EXPECT_EQ(shard_.cut()->values.data(), place);
  EXPECT_EQ(values_of(shard_.cut()->values.span().first(kSize)), values_of(shard_.parameters()));
}

INSTANTIATE_TEST_SUITE_P(OfOptimizer, ShardCut,
                         testing::Values(math::OptimizerKind::kSgd, math::OptimizerKind::kMomentum,
                                         math::OptimizerKind::kAdagrad, math::OptimizerKind::kAdam,
                                         math::OptimizerKind::kAdamw),
                         [](const auto& test) {
                           return std::string(math::optimizer_name(test.param));
                         });

TEST(ShardCutOf, AStepThatNobodyAskedForIsNotKept) {
  Shard shard(sgd_config(kTwoTrainers), {.begin = 0, .end = kSize});
  make_step(shard, 0);
  EXPECT_FALSE(shard.cut());
}

TEST(ShardCutOf, ARestoreForgetsIt) {
  Shard shard(sgd_config(kTwoTrainers), {.begin = 0, .end = kSize});
  make_step(shard, 0, /*wants_cut=*/true);
  ASSERT_TRUE(shard.cut());
  restore(shard, {0, 0, 0}, 7);
  EXPECT_FALSE(shard.cut()) << "it is of a state that is no more";
}

TEST(ShardCutOf, OneThatIsHalfCopiedIsWholeWhileTheStateIsReplaced) {
  Shard shard(sgd_config(kTwoTrainers), {.begin = 0, .end = kSize});
  make_step(shard, 0, /*wants_cut=*/true);
  const Values before = values_of(shard.parameters());
  shard.copy_cut(1);
  for (const std::span<float> place : shard.begin_restore(/*parameters_only=*/false)) {
    std::ranges::fill(place, 7.0F);
  }
  EXPECT_EQ(values_of(shard.cut()->values.span().first(kSize)), before);
}

TEST(ShardCutOf, ALateGradientOfABackupWorkerIsTheStateAsItIs) {
  Shard shard(backup_config(2, 1), {.begin = 0, .end = kSize});
  push(shard, id(1, 0), three_values(1, 0));
  EXPECT_EQ(shard.admit(id(0, 0, /*wants_cut=*/true)).verdict, Verdict::kDiscard);
  ASSERT_TRUE(shard.cut());
  EXPECT_EQ(shard.cut()->step, 1U);
}

TEST(ShardCutOf, AnAsynchronousPushIsTheStateItLeadsTo) {
  Shard shard(async_config(2), {.begin = 0, .end = kSize});
  push(shard, id(1, 0), three_values(1, 0));
  push(shard, id(0, 1, /*wants_cut=*/true), three_values(0, 1));
  ASSERT_TRUE(shard.cut());
  EXPECT_EQ(shard.cut()->step, 2U);
  EXPECT_EQ(values_of(shard.cut()->values.span()), values_of(shard.parameters()));
}

}  // namespace
}  // namespace disttf::roles
