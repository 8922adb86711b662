// Running statistics: the ps averages what trainers push of them as it averages gradients, in every
// mode, and moves the running values. Neither learning rate nor schedule affects them.
#include <gtest/gtest.h>

#include <vector>

#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

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

}  // namespace
}  // namespace disttf::roles
