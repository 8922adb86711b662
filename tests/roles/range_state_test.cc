// Which run and which state a host of a range holds, from the first configuration to the end.
#include "roles/ps/core/range_state.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "math/model.h"
#include "roles/ps/core/gradient_check.h"
#include "roles/ps/core/replication_log.h"
#include "tests/roles/replica_host.h"
#include "tests/roles/shard_pushes.h"
#include "tests/support/thrown.h"

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
    return sentence_of([&] { return state_.checked_config(to_json(config), is_replicated); }, "");
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

// Which steps a primary may answer, given what its backup has.

using Acknowledged = ReplicationLog::Progress;

class ReplicationLogTest : public testing::Test {
 protected:
  // The other host has acknowledged everything and is complete.
  void pair() {
    const auto state = log_.begin_fill();
    ASSERT_EQ(log_.acknowledged(state), Acknowledged::kFilled);
    const auto end = log_.complete();
    ASSERT_EQ(log_.acknowledged(end), Acknowledged::kComplete);
  }
  [[nodiscard]] bool is_step_safe() const { return log_.is_safe(log_.head(), true); }

  ReplicationLog log_;
};

TEST_F(ReplicationLogTest, ALonePrimaryDoesNotWait) {
  log_.append();
  log_.append();
  log_.append();
  EXPECT_TRUE(is_step_safe());
}

TEST_F(ReplicationLogTest, AnswersWaitForAHostThatIsFilledTooSlowly) {
  const auto state = log_.begin_fill();
  log_.append();
  EXPECT_TRUE(is_step_safe()) << "two entries are on their way";
  const auto update = log_.append();
  EXPECT_FALSE(is_step_safe());
  log_.acknowledged(state);
  EXPECT_TRUE(is_step_safe());
  EXPECT_LT(state, update);
}

TEST_F(ReplicationLogTest, NothingIsAnsweredThatACompleteBackupHasNot) {
  pair();
  EXPECT_TRUE(is_step_safe());
  const auto update = log_.append();
  EXPECT_FALSE(is_step_safe());
  log_.acknowledged(update);
  EXPECT_TRUE(is_step_safe());
}

// Its later acknowledgement changes nothing.
TEST_F(ReplicationLogTest, WhatWasHandedOffCountsAsAcknowledged) {
  pair();
  const auto first = log_.append();
  const auto second = log_.append();
  log_.handed_off(first);
  EXPECT_EQ(log_.lag(), 1U);
  EXPECT_FALSE(is_step_safe());
  log_.handed_off(second);
  EXPECT_TRUE(is_step_safe());
  EXPECT_EQ(log_.acknowledged(first), Acknowledged::kNone);
  EXPECT_EQ(log_.lag(), 0U);
}

// A backup counts from the moment at which it is notified that it is complete, and not from its
// acknowledgement.
TEST_F(ReplicationLogTest, ABackupCountsFromWhenItMayBeChosen) {
  log_.acknowledged(log_.begin_fill());
  log_.complete();
  EXPECT_TRUE(log_.needs_acks());
  EXPECT_FALSE(log_.is_complete());
  EXPECT_FALSE(is_step_safe());
}

TEST_F(ReplicationLogTest, LaterPushesOfOthersHoldBackNoAnswerThatOmitsThem) {
  pair();
  const auto own = log_.append();
  log_.append();
  log_.acknowledged(own);
  EXPECT_TRUE(log_.is_safe(own, false));
  EXPECT_FALSE(log_.is_safe(own, true));
}

TEST_F(ReplicationLogTest, WhoLosesItsBackupWaitsUntilItMayGoOnAlone) {
  pair();
  log_.append();
  log_.lose_backup();
  EXPECT_FALSE(log_.is_complete());
  EXPECT_FALSE(is_step_safe());
  log_.go_alone();
  EXPECT_TRUE(is_step_safe());
}

TEST_F(ReplicationLogTest, WhoIsChosenOutOfAPairAsksBeforeItAnswers) {
  log_.begin(/*paired=*/true);
  log_.append();
  EXPECT_FALSE(is_step_safe());
  log_.go_alone();
  EXPECT_TRUE(is_step_safe());
}

TEST_F(ReplicationLogTest, AnAcknowledgementOfTheHostBeforeIsNotTheNextOnes) {
  const auto state = log_.begin_fill();
  log_.lose_backup();
  log_.begin_fill();
  EXPECT_EQ(log_.acknowledged(state), Acknowledged::kNone);
}

using testing::HasSubstr;
using testing::Optional;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::optional<std::string> fault_in(const Values& gradient, float max_norm = 0) {
  RunConfig config = sgd_config(1);
  config.max_gradient_norm = max_norm;
  return GradientCheck(config, {.begin = 0, .end = gradient.size()}).fault_in(gradient);
}

TEST(GradientCheck, FindsNothingBadInNumbers) {
  EXPECT_EQ(fault_in({}), std::nullopt);
  EXPECT_EQ(fault_in({0, -1, 1e-45F}), std::nullopt);
  EXPECT_EQ(fault_in(Values(1000, kLargest)), std::nullopt) << "squares of floats fit into double";
}

TEST(GradientCheck, FindsTheOneValueThatIsNoNumberWhereverItIs) {
  constexpr std::size_t kSize = 67;  // not a multiple of a vector register's size
  for (std::size_t at = 0; at < kSize; ++at) {
    for (const float value : {kNone, kInfinity, -kInfinity}) {
      Values gradient(kSize, 1);
      gradient[at] = value;
      EXPECT_THAT(fault_in(gradient), Optional(HasSubstr("non-finite values, 1 of 67"))) << at;
    }
  }
  EXPECT_THAT(fault_in({kInfinity, -kInfinity}), Optional(HasSubstr("2 of 2")))
      << "though they may come to 0";
}

TEST(GradientCheck, FindsWhatIsLongerThanTheRunAllowsButForRounding) {
  EXPECT_EQ(fault_in({3, -4}, 5), std::nullopt);
  EXPECT_EQ(fault_in({3.02F, -4.02F}, 5), std::nullopt);
  EXPECT_THAT(fault_in({3.1F, -4.1F}, 5),
              Optional(HasSubstr("has a norm of 5.14004 here, --max_gradient_norm is 5")));
}

// Of a ps whose range begins behind the first variable.
TEST(GradientCheck, NamesTheVariableOfTheFirstValueThatIsNoNumber) {
  RunConfig config = sgd_config(1);
  config.model.variables = {{.name = "w", .shape = {5}}, {.name = "b", .shape = {20}}};
  const GradientCheck whole(config, {.begin = 0, .end = 48});
  Values gradient(48);
  gradient[40] = kNone;
  gradient[16] = kInfinity;
  EXPECT_THAT(whole.fault_in(gradient), Optional(testing::EndsWith("; the first is in b")));
  gradient[4] = kNone;
  EXPECT_THAT(whole.fault_in(gradient), Optional(testing::EndsWith("; the first is in w")));
  const GradientCheck second(config, {.begin = 16, .end = 48});
  EXPECT_THAT(second.fault_in(Values(32, kNone)),
              Optional(testing::EndsWith("; the first is in b")));
}

// In blocks of 16 numbers with one exponent and 4 bits each, rounding may lengthen a vector by
// half.
TEST(GradientCheck, LetsPassWhatRoundingToFewBitsAdds) {
  RunConfig config = sgd_config(1);
  config.wire_dtype = WireDtype::kInt4;
  config.max_gradient_norm = 5;
  const GradientCheck check(config, {.begin = 0, .end = 2});
  EXPECT_EQ(check.fault_in(Values{3.8F, -5.1F}), std::nullopt);
  EXPECT_NE(check.fault_in(Values{4.0F, -5.3F}), std::nullopt);
}

// A running mean has no gradient: the statistics in its position may have any size.
TEST(GradientCheck, RunningStatisticsAreNoPartOfTheNormButMustBeNumbers) {
  RunConfig config = sgd_config(1);
  config.model = {.input = {.channels = 1},
                  .classes = 2,
                  .layers = {{.type = "batch_norm", .name = {}, .fields = {}},
                             {.type = "dense", .name = {}, .fields = {{"units", 2.0}}}}};
  config.max_gradient_norm = 1;
  const math::ParameterLayout layout = math::layout_of(config.model);
  const math::Range whole{.begin = 0, .end = layout.size()};
  const std::vector<math::RunningRange> running = layout.running(whole);
  ASSERT_FALSE(running.empty());
  Values gradient(layout.size());
  gradient[running.front().range.begin] = 100;
  const GradientCheck check(config, whole);
  EXPECT_EQ(check.fault_in(gradient), std::nullopt);
  gradient.back() = 100;
  EXPECT_THAT(check.fault_in(gradient), Optional(HasSubstr("has a norm of 100 here")));
  gradient.back() = 0;
  gradient[running.front().range.begin] = kNone;
  EXPECT_THAT(check.fault_in(gradient), Optional(HasSubstr("non-finite values, 1 of")));

  // As a ps checks it whose range begins between the statistics.
  const std::size_t begin = running.front().range.end;
  const GradientCheck second(config, {.begin = begin, .end = whole.end});
  const std::vector<math::RunningRange> behind = layout.running({.begin = begin, .end = whole.end});
  ASSERT_FALSE(behind.empty());
  Values part(whole.end - begin);
  part[behind.front().range.begin] = 100;
  EXPECT_EQ(second.fault_in(part), std::nullopt);
  part.back() = 100;
  EXPECT_THAT(second.fault_in(part), Optional(HasSubstr("has a norm of 100 here")));
}

}  // namespace
}  // namespace disttf::roles
