// A ps's core in an elastic run: which micro-batches are assigned to whom, which trainers are
// waited for, and for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "tests/roles/range_replica_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::seconds;
using ::testing::HasSubstr;

// The micro-batches assigned to a lost trainer are scheduled again, also if another trainer was
// computing when it returned.
TEST_F(RangeReplicaTest, SchedulesWhatIsMissingOnceNoTrainerIsAtWork) {
  const ConnectionId chief = host_.connect(0, 7);
  ConnectionId other = host_.connect(1, 8);
  RunConfig config = small_run();
  config.micro_batches = 3;
  config.min_workers = 2;
  begin_run(host_, chief, config);
  const FrameHeader next{.kind = FrameKind::kPull, .flags = net::kFlagNext, .generation = 1};
  ASSERT_TRUE(host_.say(chief, next));
  ASSERT_TRUE(host_.say(other, next));
  expect(host_, chief, FrameKind::kWork);  // 0, and then 2
  expect(host_, chief, FrameKind::kWork);
  expect(host_, other, FrameKind::kWork);  // 1
  host_.hang_up(other);
  other = host_.connect(1, 8);
  ASSERT_TRUE(host_.say(other, next));
  EXPECT_FALSE(host_.take(other)) << "the chief is at work";
  for (const std::uint64_t slot : {0U, 2U}) {
    ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kPush, .sequence = slot, .generation = 1},
                          gradient(1)));
  }
  expect(host_, chief, FrameKind::kWork);  // 1
}

// A late copy of a push may refer to memory in which the trainer computes another gradient.
TEST_F(RangeReplicaTest, WhatAnElasticTrainerHasPushedBeforeItPulledIsNotRead) {
  RunConfig config = small_run();
  config.micro_batches = 2;
  config.min_workers = 1;
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, config);
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kPull, .request_id = 9}));
  expect(host_, chief, FrameKind::kParameters);
  const auto push = [&](std::uint64_t request, std::uint64_t slot) {
    return host_.say(
        chief, {.kind = FrameKind::kPush, .request_id = request, .sequence = slot, .generation = 1},
        gradient(1));
  };
  ASSERT_TRUE(push(8, 0));
  EXPECT_EQ(host_.core.state().shard()->counters().pushes, 0U);
  ASSERT_TRUE(push(10, 0));
  EXPECT_EQ(host_.core.state().shard()->counters().pushes, 1U);
}

TEST_F(RangeReplicaTest, GradientsOfMicroBatchesAreReadWhereTheyLie) {
  RunConfig config = small_run();
  config.optimizer = {.kind = math::OptimizerKind::kSgd, .learning_rate = 1.0F};
  config.rate_decay = math::RateDecay::kNone;
  config.micro_batches = 2;
  config.min_workers = 1;
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, config);
  const auto push = [&](std::uint64_t slot, const std::shared_ptr<std::vector<std::byte>>& body) {
    FrameHeader header{
        .kind = FrameKind::kPush, .request_id = 10 + slot, .sequence = slot, .generation = 1};
    header.body_size = body->size();
    const BodyPlan plan =
        host_.core.header(chief, header, host_.now(), {.bytes = *body, .owner = body});
    EXPECT_EQ(plan.next, BodyPlan::Next::kHeader) << "nothing more comes";
  };
  const auto first = std::make_shared<std::vector<std::byte>>(gradient(1));
  push(1, first);
  EXPECT_EQ(first.use_count(), 2) << "it is kept, and not copied";
  push(0, std::make_shared<std::vector<std::byte>>(gradient(1)));
  EXPECT_EQ(host_.core.state().shard()->step(), 1U);
  EXPECT_EQ(first.use_count(), 1);
}

// A host with three workers, two of which are needed for a step.
class AFewOfThree : public RangeReplicaTest {
 protected:
  void SetUp() override {
    task3_.cluster.workers.push_back({.host = "w2", .port = 4});
    host3_.emplace(task3_);
    chief_ = host3_->connect(0, 7);
    first_ = host3_->connect(1, 8);
    second_ = host3_->connect(2, 9);
  }
  [[nodiscard]] static RunConfig elastic() {
    RunConfig config = small_run();
    config.trainers = 3;
    config.micro_batches = 3;
    config.min_workers = 2;
    return config;
  }
  [[nodiscard]] static RunConfig with_backup_worker() {
    RunConfig config = small_run();
    config.trainers = 3;
    config.replicas_to_aggregate = 2;
    return config;
  }
  // In both modes the second worker has left for good, and the first is disconnected as well.
  void expect_patience(const RunConfig& config) {
    begin_run(*host3_, chief_, config);
    host3_->hang_up(second_);
    host3_->pass(seconds(100));
    EXPECT_FALSE(overdue()) << "enough are left";
    host3_->hang_up(first_);
    host3_->pass(seconds(20));
    EXPECT_FALSE(overdue()) << "they were too few for no longer than one may be away";
    host3_->pass(seconds(1));
    EXPECT_THAT(overdue().value_or(""), HasSubstr("has been gone for 20 s"));
  }
  [[nodiscard]] std::optional<std::string> overdue() const {
    return host3_->core.overdue(host3_->now());
  }

  Task task3_ = task_of_ps(0);
  std::optional<ReplicaHost> host3_;
  ConnectionId chief_ = 0;
  ConnectionId first_ = 0;
  ConnectionId second_ = 0;
};

TEST_F(AFewOfThree, AWorkerThatLeftForGoodEndsNoRunOfWhichAnotherIsAwayForAMoment) {
  expect_patience(elastic());
}

TEST_F(AFewOfThree, NorDoesOneThatLeftForGoodWhereThereAreBackupWorkers) {
  expect_patience(with_backup_worker());
}

TEST_F(AFewOfThree, ThatTheyWereTooFewBeforeDoesNotCount) {
  begin_run(*host3_, chief_, elastic());
  host3_->hang_up(second_);
  for (int times = 0; times < 3; ++times) {
    host3_->hang_up(first_);
    host3_->pass(seconds(15));
    EXPECT_FALSE(overdue());
    first_ = host3_->connect(1, 8);
    host3_->pass(seconds(1));
  }
}

TEST_F(AFewOfThree, TimeThatThePsMissedIsNoTimeWithTooFew) {
  begin_run(*host3_, chief_, elastic());
  host3_->hang_up(second_);
  host3_->pass(seconds(100));
  host3_->hang_up(first_);
  host3_->pass(seconds(10));
  host3_->core.forgive(std::chrono::hours(2), host3_->now() + std::chrono::hours(2));
  EXPECT_FALSE(host3_->core.overdue(host3_->now() + std::chrono::hours(2) + seconds(10)));
  EXPECT_TRUE(host3_->core.overdue(host3_->now() + std::chrono::hours(2) + seconds(11)));
}

// Its next process may die before it has joined, since the control channel opens first.
TEST_F(AFewOfThree, WhatAReplacedTrainerWasComputingIsScheduledAtOnce) {
  begin_run(*host3_, chief_, elastic());
  const FrameHeader next{.kind = FrameKind::kPull, .flags = net::kFlagNext, .generation = 1};
  for (const ConnectionId id : {chief_, first_, second_}) {
    ASSERT_TRUE(host3_->say(id, next));
  }
  for (const ConnectionId id : {chief_, first_, second_}) {
    expect(*host3_, id, FrameKind::kWork);
  }
  for (const auto& [id, slot] : {std::pair(chief_, 0U), std::pair(first_, 1U)}) {
    ASSERT_TRUE(host3_->say(id, {.kind = FrameKind::kPush, .sequence = slot, .generation = 1},
                            gradient(1)));
  }
  EXPECT_FALSE(host3_->take(chief_)) << "the second is at work";
  host3_->core.attach_control(99,
                              {.cluster = {},
                               .from = task3_.cluster.trainer(2),
                               .to = task3_.self,
                               .purpose = net::ChannelPurpose::kControl,
                               .incarnation = 10},
                              host3_->now());
  host3_->pass(seconds(1));
  expect(*host3_, chief_, FrameKind::kWork);
}

}  // namespace
}  // namespace disttf::roles
