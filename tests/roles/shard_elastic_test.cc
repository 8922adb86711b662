// Gradients of micro-batches, from any trainer, sent or in place.
#include <gtest/gtest.h>

#include <memory>

#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

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
