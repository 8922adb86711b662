// Averaged parameters: they are part of the state, and only the result contains them.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace disttf::roles
