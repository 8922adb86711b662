// Which run and which state a host of a range holds, from the first configuration to the end.
#include "roles/ps/core/range_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "tests/roles/replica_host.h"

namespace disttf::roles {
namespace {

using ::testing::HasSubstr;

constexpr net::Generation kSomeGeneration = 7;

class RangeStateTest : public testing::Test {
 protected:
  void begin(const RunConfig& config = small_run()) {
    const std::string text = to_json(config);
    state_.begin_run(state_.checked_config(text, config.ps_replicas > 1), text);
  }
  void restore(std::uint64_t step = 0) {
    state_.invalidate();
    for (const std::span<float> place : state_.begin_restore(/*parameters_only=*/true)) {
      std::ranges::fill(place, 0.0F);
    }
    state_.finish_restore(step, kSomeGeneration);
  }
  // Returns why this ps cannot serve the configuration.
  std::string why_not(const RunConfig& config, bool is_replicated = false) {
    try {
      static_cast<void>(state_.checked_config(to_json(config), is_replicated));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return {};
  }

  Task task_ = task_of_ps(0);
  std::size_t updates_ = 0;
  RangeState state_{task_, 0, 1, {}, [this](const ShardUpdate&) { ++updates_; }};
};

TEST_F(RangeStateTest, ARunAloneIsNoState) {
  EXPECT_EQ(state_.trainers_needed(), 2) << "before anything is known: all";
  begin();
  ASSERT_TRUE(state_.shard());
  EXPECT_EQ(state_.config_json(), to_json(small_run()));
  EXPECT_FALSE(state_.is_restored());
  EXPECT_FALSE(state_.is_of(state_.generation()));
}

TEST_F(RangeStateTest, AStateIsNamedByItsGeneration) {
  begin();
  restore();
  EXPECT_TRUE(state_.is_restored());
  EXPECT_TRUE(state_.is_of(kSomeGeneration));
  EXPECT_FALSE(state_.is_of(kSomeGeneration - 1));
  EXPECT_EQ(state_.restores(), 1);
  EXPECT_EQ(state_.lineage(), task_.incarnation) << "it began in this process";
  state_.invalidate();
  EXPECT_FALSE(state_.is_of(kSomeGeneration)) << "it is being overwritten";
}

TEST_F(RangeStateTest, ACopyIsNoStateBeforeItIsServed) {
  begin();
  state_.took_copy(kSomeGeneration, 55);
  EXPECT_FALSE(state_.is_restored());
  state_.serve_copy();
  EXPECT_TRUE(state_.is_of(kSomeGeneration));
  EXPECT_EQ(state_.lineage(), 55) << "of the process in which it began";
}

TEST_F(RangeStateTest, WhatIsForgottenBeganNowhere) {
  begin();
  state_.took_copy(kSomeGeneration, 55);
  state_.serve_copy();
  state_.forget();
  EXPECT_FALSE(state_.shard());
  EXPECT_TRUE(state_.config_json().empty());
  EXPECT_EQ(state_.lineage(), task_.incarnation);
}

TEST_F(RangeStateTest, OfAResultThatIsElsewhereTheGenerationIsKept) {
  begin();
  restore();
  state_.drop_for(kSomeGeneration + 1);
  EXPECT_FALSE(state_.shard());
  EXPECT_FALSE(state_.is_restored());
  EXPECT_EQ(state_.generation(), kSomeGeneration + 1);
}

TEST_F(RangeStateTest, FullySynchronousParametersAreAResultAfterTheLastStepAlone) {
  begin(small_run(3));
  restore(2);
  EXPECT_FALSE(state_.may_be_result());
  EXPECT_EQ(state_.trainers_needed(), 2);
  restore(3);
  EXPECT_TRUE(state_.may_be_result());
  EXPECT_EQ(state_.trainers_needed(), 0) << "no step is made after it";
}

TEST_F(RangeStateTest, StepsNeedAsManyTrainersAsTheirGradientsCount) {
  RunConfig config = small_run();
  config.replicas_to_aggregate = 1;
  begin(config);
  EXPECT_EQ(state_.trainers_needed(), 1);
  config.replicas_to_aggregate = 0;
  config.sync_replicas = false;
  begin(config);
  EXPECT_EQ(state_.trainers_needed(), 0) << "async";
}

TEST_F(RangeStateTest, UpdatesOfARunWithReplicasAreToldOn) {
  for (const std::size_t replicas : {1U, 2U}) {
    RunConfig config = small_run();
    config.ps_replicas = replicas;
    begin(config);
    restore();
    push(*state_.shard(), 0, 0, 1.0F);
    push(*state_.shard(), 1, 0, 1.0F);
    EXPECT_EQ(updates_, replicas - 1);
  }
}

TEST_F(RangeStateTest, RefusesARunThatItCannotServe) {
  EXPECT_EQ(why_not(small_run()), "");
  RunConfig config = small_run();
  config.trainers = 3;
  EXPECT_THAT(why_not(config), HasSubstr("the chief counts 3 trainers, ps 0 (ps0:1) 2"));
  EXPECT_THAT(why_not(small_run(), /*is_replicated=*/true), HasSubstr("--ps_replicas 1"));
}

TEST_F(RangeStateTest, SaysWhichTensorIsNotItsRange) {
  begin();
  restore();
  const std::uint64_t bytes = state_.shard()->range().size() * sizeof(float);
  EXPECT_FALSE(state_.fault_in({.body_size = bytes, .range_begin = 0}));
  const auto fault = state_.fault_in({.body_size = bytes, .range_begin = 4});
  ASSERT_TRUE(fault);
  EXPECT_THAT(*fault, HasSubstr("from float 4 on is not the range of ps 0"));
  EXPECT_TRUE(state_.gradient_fault({.body_size = bytes - 4, .range_begin = 0}, false));
}

TEST_F(RangeStateTest, ASnapshotShardIsReturnedForItsNameAndState) {
  begin();
  restore();
  EXPECT_FALSE(state_.find_snapshot({.name = 9, .now = false, .generation = kSomeGeneration}));
  EXPECT_FALSE(state_.find_snapshot({.name = 9, .now = true, .generation = kSomeGeneration - 1}));
  EXPECT_FALSE(state_.kept_snapshot(9, kSomeGeneration))
      << "it is made for those of this state alone";
  EXPECT_TRUE(state_.find_snapshot({.name = 9, .now = true, .generation = kSomeGeneration}));
  EXPECT_TRUE(state_.kept_snapshot(9, kSomeGeneration));
  EXPECT_FALSE(state_.kept_snapshot(8, kSomeGeneration));
  EXPECT_FALSE(state_.kept_snapshot(9, kSomeGeneration - 1));
}

}  // namespace
}  // namespace disttf::roles
