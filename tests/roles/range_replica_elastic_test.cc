// A ps's core in an elastic run: which micro-batches are assigned to whom, which trainers are
// waited for, and for how long.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// Gradients that must not go into a step are rejected in every mode and form, but only if a step
// would have been made from them.

// The mode, and the form in which a trainer pushes its gradient.
struct Way {
  const char* name;
  RunConfig config = small_run();
  FrameHeader push = {.kind = FrameKind::kPushPull, .sequence = 1, .generation = 1};
  bool in_place = false;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

std::vector<Way> ways() {
  std::vector<Way> all{{.name = "Sync"},     {.name = "InPlace", .in_place = true},
                       {.name = "Bfloat16"}, {.name = "BackupWorkers"},
                       {.name = "Async"},    {.name = "Elastic"}};
  all[2].config.wire_dtype = WireDtype::kBf16;
  all[2].push.flags = net::kFlagBf16;
  all[3].config.replicas_to_aggregate = 1;
  all[4].config.sync_replicas = false;
  all[5].config.micro_batches = 2;
  all[5].config.min_workers = 1;
  all[5].push = {.kind = FrameKind::kPush, .sequence = 1, .generation = 1};
  return all;
}

class RejectedGradient : public RangeReplicaTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    begin_run(host_, host_.connect(0, 7), GetParam().config);
    other_ = host_.connect(1, 8);
    if (GetParam().config.elastic()) {
      ASSERT_TRUE(
          host_.say(other_, {.kind = FrameKind::kPull, .flags = net::kFlagNext, .generation = 1}));
    }
  }
  // A gradient of ones with one other value.
  [[nodiscard]] Bytes with(float value) const {
    std::vector<float> values(size_, 1);
    values[size_ / 2] = value;
    if (GetParam().config.wire_dtype == WireDtype::kBf16) {
      std::vector<std::uint16_t> halves(size_);
      std::ranges::transform(values, halves.begin(), [](float each) {
        return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(each) >> 16U);
      });
      return bytes_of(halves);
    }
    return bytes_of(values);
  }
  template <typename Number>
  static Bytes bytes_of(const std::vector<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return {bytes.begin(), bytes.end()};
  }
  // Returns false if the gradient was refused or is otherwise unusable.
  bool push(const Bytes& gradient) {
    if (!GetParam().in_place) {
      return host_.say(other_, GetParam().push, gradient);
    }
    FrameHeader header = GetParam().push;
    header.body_size = gradient.size();
    const auto kept = std::make_shared<Bytes>(gradient);
    const BodyPlan plan =
        host_.core.header(other_, header, host_.now(), {.bytes = *kept, .owner = kept});
    host_.pass(ReplicaHost::Seconds(1));  // handles its effects
    return plan.next == BodyPlan::Next::kHeader;
  }
  [[nodiscard]] const ShardCounters& counters() { return host_.core.state().shard()->counters(); }

  ConnectionId other_ = 0;
};
INSTANTIATE_TEST_SUITE_P(InEachMode, RejectedGradient, testing::ValuesIn(ways()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(RejectedGradient, IsRefusedAndNoStepIsMadeOfIt) {
  for (const float none :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_FALSE(push(with(none)));
    EXPECT_THAT(host_.refused().at(other_), HasSubstr("has non-finite values, 1 of "));
    host_.hang_up(other_);
    other_ = host_.connect(1, 8);
  }
  EXPECT_EQ(counters().bad, 2U);
  EXPECT_EQ(counters().pushes, 0U);
  const ConnectionId asks = host_.connect(0, 7, net::ChannelPurpose::kControl);
  ASSERT_TRUE(host_.say(asks, {.kind = FrameKind::kStatus}));
  const auto status = host_.take(asks);
  ASSERT_TRUE(status.has_value());
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(status->body.data()), status->body.size()),
              HasSubstr("\"bad\":2"));
  EXPECT_TRUE(push(with(2))) << "an honest one is taken after that";
  EXPECT_EQ(counters().pushes, 1U);
}

// A trainer that was too slow is notified of that, and not that its gradient was rejected.
TEST_F(RangeReplicaTest, ARejectedGradientThatWasOvertakenIsDropped) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  RunConfig config = small_run();
  config.replicas_to_aggregate = 1;
  begin_run(host_, chief, config);
  const Bytes bad = gradient(std::numeric_limits<float>::infinity());
  const BodyPlan plan = host_.begin(other, push(0), bad.size());
  ASSERT_TRUE(host_.say(chief, push(0), gradient(1)));  // makes the step
  EXPECT_TRUE(host_.deliver(other, plan, bad));
  EXPECT_EQ(host_.core.state().shard()->counters().dropped, 1U);
  EXPECT_EQ(host_.core.state().shard()->counters().bad, 0U);
  EXPECT_TRUE(host_.refused().empty());
}

TEST_F(RangeReplicaTest, WhereRejectedGradientsAreCountedTheFirstOfAConnectionIsReported) {
  const ConnectionId chief = host_.connect(0, 7);
  RunConfig config = small_run();
  config.sync_replicas = false;
  config.rejected_gradients = RejectedGradients::kCount;
  config.max_gradient_norm = 1;
  begin_run(host_, chief, config);
  for (const std::uint64_t step : {0U, 1U}) {
    ASSERT_TRUE(host_.say(chief, push(step), gradient(1)));
    expect(host_, chief, FrameKind::kParameters);
  }
  EXPECT_EQ(host_.core.state().shard()->counters().bad, 2U);
  EXPECT_EQ(host_.core.state().shard()->step(), 2U) << "they are used";
  EXPECT_EQ(std::ranges::count_if(host_.log(),
                                  [](const std::string& line) {
                                    return line.find("--max_gradient_norm is 1; it is used") !=
                                           std::string::npos;
                                  }),
            1);
}

}  // namespace
}  // namespace disttf::roles
