// A ps's core in virtual time: what it answers to which trainer, and when it gives a trainer up.
#include <gmock/gmock.h>

#include <chrono>
#include <span>
#include <vector>

#include "tests/roles/range_replica_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RangeReplicaTest, AnswersTheStepToAllOnceItIsMade) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(chief, push(0), gradient(2)));
  EXPECT_FALSE(host_.take(chief)) << "one gradient is missing";
  ASSERT_TRUE(host_.say(other, push(0), gradient(4)));
  expect_parameters(host_, chief, 1, -3);
  expect_parameters(host_, other, 1, -3);
}

TEST_F(RangeReplicaTest, AGradientWhoseConnectionBreaksIsNotUsed) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(chief, push(0), gradient(2)));
  const BodyPlan plan = host_.begin(other, push(0), size_ * sizeof(float));
  ASSERT_EQ(plan.next, BodyPlan::Next::kInto);
  std::ranges::fill(plan.places[0].first(plan.places[0].size() / 2), std::byte{0x44});
  host_.hang_up(other);
  EXPECT_FALSE(host_.take(chief));
  const ConnectionId again = host_.connect(1, 8);
  ASSERT_TRUE(host_.say(again, push(0), gradient(4)));
  expect_parameters(host_, chief, 1, -3);
}

TEST_F(RangeReplicaTest, AGradientThatWasOvertakenByARestoreIsFenced) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  const BodyPlan plan = host_.begin(other, push(0), size_ * sizeof(float));
  begin_run(host_, chief, small_run(), 0, 2);
  EXPECT_TRUE(host_.deliver(other, plan, gradient(4)));
  expect(host_, other, FrameKind::kFenced);
  ASSERT_TRUE(host_.say(chief, push(0, 2), gradient(2)));
  EXPECT_FALSE(host_.take(chief)) << "the fenced one does not count";
}

// Otherwise the push would count as answered in the new state, which lacks it.
TEST_F(RangeReplicaTest, ARepeatThatWasOvertakenByARestoreIsFenced) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(other, push(0), gradient(4)));
  const ConnectionId again = host_.connect(1, 8);
  const BodyPlan plan = host_.begin(again, push(0), size_ * sizeof(float));
  ASSERT_EQ(plan.next, BodyPlan::Next::kDiscard);
  begin_run(host_, chief, small_run(), 0, 2);
  ASSERT_TRUE(host_.deliver(again, plan, gradient(4)));
  expect(host_, again, FrameKind::kFenced);
}

// The chief uses a new generation each time.
TEST_F(RangeReplicaTest, ACopyOfARestoreIsFenced) {
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kRestore, .step = 1, .generation = 1},
                        Bytes(size_ * sizeof(float))));
  expect(host_, chief, FrameKind::kFenced);
  EXPECT_EQ(host_.core.state().shard()->step(), 0);
}

TEST_F(RangeReplicaTest, AFieldOrAFlagThatAKindHasNotIsRefused) {
  begin_run(host_, host_.connect(0, 7), small_run());
  const ConnectionId asks = host_.connect(1, 8);
  EXPECT_FALSE(host_.say(asks, {.kind = FrameKind::kPull, .step = 1}));
  EXPECT_EQ(host_.refused().at(asks), "reserved bytes of the frame header are not zero");
  const ConnectionId pushes = host_.connect(1, 8);
  net::FrameHeader header = push(0);
  header.flags |= net::kFlagPrevious;
  EXPECT_FALSE(host_.say(pushes, header, gradient(4)));
  EXPECT_EQ(host_.refused().at(pushes), "unknown flags in the frame header");
}

TEST_F(RangeReplicaTest, ThatIsSoOfEveryKind) {
  begin_run(host_, host_.connect(0, 7), small_run());
  for (const FrameKind kind :
       {FrameKind::kPublish, FrameKind::kGetConfig, FrameKind::kRestore, FrameKind::kHeartbeat,
        FrameKind::kGoodbye, FrameKind::kShutdown, FrameKind::kStatus}) {
    const ConnectionId chief = host_.connect(0, 7);
    EXPECT_FALSE(host_.say(chief, {.kind = kind, .sequence = 1})) << static_cast<int>(kind);
    EXPECT_EQ(host_.refused().at(chief), "reserved bytes of the frame header are not zero");
  }
}

TEST_F(RangeReplicaTest, AReplyThatIsStillLeavingIsNotOverwritten) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  expect_parameters(host_, other, 0, 0);
  begin_run(host_, chief, small_run(), 0, 2);
  EXPECT_FALSE(host_.is_closed(other)) << "what it was sent is the older buffer";
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kHeartbeat}));
  begin_run(host_, chief, small_run(), 0, 3);
  EXPECT_TRUE(host_.is_closed(other));
}

// The other trainer had pushed before it was lost. The step that it pulls becomes the previous one
// as soon as the chief has pushed, too.
TEST_F(RangeReplicaTest, AReplyOfTheStepBeforeIsNotOverwrittenEither) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(other, push(0), gradient(4)));
  host_.hang_up(other);
  const ConnectionId again = host_.connect(1, 8);
  ASSERT_TRUE(host_.say(again, {.kind = FrameKind::kPull}));
  expect_parameters(host_, again, 0, 0);
  ASSERT_TRUE(host_.say(chief, push(0), gradient(2)));
  expect_parameters(host_, chief, 1, -3);
  begin_run(host_, chief, small_run(), 0, 2);
  EXPECT_TRUE(host_.is_closed(again));
  EXPECT_FALSE(host_.is_closed(chief));
}

TEST_F(RangeReplicaTest, WhoHasHadItsReplyKeepsItsConnection) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  for (const net::Generation generation : {2U, 3U, 4U}) {
    ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
    expect_parameters(host_, other, 0, 0);
    begin_run(host_, chief, small_run(), 0, generation);
    EXPECT_FALSE(host_.is_closed(other));
  }
}

TEST_F(RangeReplicaTest, ARepeatIsAnsweredAndNotAddedTwice) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(chief, push(0), gradient(2)));
  host_.hang_up(chief);
  const ConnectionId again = host_.connect(0, 7);
  ASSERT_TRUE(host_.say(again, push(0), gradient(2)));
  EXPECT_FALSE(host_.take(again));
  ASSERT_TRUE(host_.say(other, push(0), gradient(4)));
  expect_parameters(host_, again, 1, -3);
}

// Two trainers, neither of which may be more than one iteration ahead.
class BoundedRange : public RangeReplicaTest {
 protected:
  void SetUp() override {
    chief_ = host_.connect(0, 7);
    other_ = host_.connect(1, 8);
    RunConfig config = small_run(10);
    config.sync_replicas = false;
    config.max_staleness = 1;
    begin_run(host_, chief_, config);
    ASSERT_TRUE(host_.say(other_, push(0), gradient(1)));
    expect(host_, other_, FrameKind::kParameters);
    ASSERT_TRUE(host_.say(other_, push(1), gradient(1)));
    ASSERT_FALSE(host_.take(other_)) << "two ahead";
  }

  ConnectionId chief_ = 0;
  ConnectionId other_ = 0;
};

TEST_F(BoundedRange, WhoWaitsIsAnsweredWithThePushOfTheSlowest) {
  ASSERT_TRUE(host_.say(chief_, push(0), gradient(1)));
  expect(host_, chief_, FrameKind::kParameters);
  expect(host_, other_, FrameKind::kParameters);
}

TEST_F(BoundedRange, WhoWaitsIsAnsweredWhenTheSlowestLeaves) {
  host_.hang_up(chief_);
  expect(host_, other_, FrameKind::kParameters);
}

// ---- time ----

TEST_F(RangeReplicaTest, WhoWaitsHearsItsHeart) {
  const ConnectionId chief = host_.connect(0, 7);
  host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(chief, push(0), gradient(2)));
  host_.core.send_heartbeats(host_.now());
  const auto& effects = host_.core.out().effects();
  ASSERT_EQ(effects.size(), 1U);
  const auto& beat = std::get<SendFrame>(effects.front());
  EXPECT_EQ(beat.to, chief);
  EXPECT_EQ(beat.header.kind, FrameKind::kHeartbeat);
  EXPECT_EQ(beat.header.request_id, 10U);
}

// A trainer with its answer from this ps waits for others. The returned heartbeat shows that this
// ps is alive.
TEST_F(RangeReplicaTest, ATrainersHeartbeatIsReturned) {
  const ConnectionId chief = host_.connect(0, 7);
  host_.core.header(chief, {.kind = FrameKind::kHeartbeat}, host_.now());
  const auto& effects = host_.core.out().effects();
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_EQ(std::get<SendFrame>(effects.front()).header.kind, FrameKind::kHeartbeat);
}

TEST_F(RangeReplicaTest, AWorkerThatIsLostIsMissedAfterItsTimeout) {
  const ConnectionId chief = host_.connect(0, 7, net::ChannelPurpose::kStep);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  host_.hang_up(other);
  host_.pass(seconds(20));
  EXPECT_FALSE(host_.core.overdue(host_.now()));
  host_.pass(seconds(1));
  EXPECT_THAT(host_.core.overdue(host_.now()).value_or(""),
              HasSubstr("worker 1 (w1:3) has been gone for 20 s"));
}

TEST_F(RangeReplicaTest, NoWorkerIsMissedAfterTheLastStep) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run(1));
  ASSERT_TRUE(host_.say(other, push(0), gradient(1)));
  host_.hang_up(other);  // before it has its answer
  ASSERT_TRUE(host_.say(chief, push(0), gradient(1)));
  host_.pass(seconds(1000));
  EXPECT_FALSE(host_.core.overdue(host_.now()));
}

TEST_F(RangeReplicaTest, TimeThatTheProcessMissedDoesNotCountTowardTimeouts) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  host_.hang_up(other);
  host_.pass(seconds(10));
  host_.core.forgive(std::chrono::hours(2), host_.now() + std::chrono::hours(2));
  EXPECT_FALSE(host_.core.overdue(host_.now() + std::chrono::hours(2) + seconds(10)));
  EXPECT_TRUE(host_.core.overdue(host_.now() + std::chrono::hours(2) + seconds(11)));
}

TEST_F(RangeReplicaTest, ATrainerThatKnowsANewerGenerationSendsItAway) {
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, small_run());
  const net::Hello hello{.cluster = {},
                         .from = task_.cluster.trainer(0),
                         .to = task_.self,
                         .purpose = net::ChannelPurpose::kControl,
                         .incarnation = 7};
  host_.core.attach_control(50, hello, host_.now());
  EXPECT_FALSE(host_.core.record_heartbeat(hello, 1, host_.now()));
  EXPECT_THAT(host_.core.record_heartbeat(hello, 2, host_.now()).value_or(""),
              HasSubstr("the run is in generation 2, this task holds generation 1"));
}

// A trainer that joins the run again, for example after the loss of another ps, opens another step
// channel.
TEST_F(RangeReplicaTest, ATrainerWhoseHeartbeatsComeIsNotLost) {
  const net::Hello beats{.cluster = {},
                         .from = task_.cluster.trainer(1),
                         .to = task_.self,
                         .purpose = net::ChannelPurpose::kControl,
                         .incarnation = 8};
  host_.core.attach_control(50, beats, host_.now());
  host_.hang_up(host_.connect(1, 8));
  const ConnectionId again = host_.connect(1, 8);
  EXPECT_THAT(host_.log(), ElementsAre("worker 1 joined"));
  host_.hang_up(again);
  host_.core.detach_control(50, beats, host_.now());
  host_.connect(1, 8);
  EXPECT_THAT(host_.log(), ElementsAre("worker 1 joined", "worker 1 was lost", "worker 1 joined"));
}

TEST_F(RangeReplicaTest, AnotherProcessOfATrainerIsSaidToHaveJoined) {
  host_.connect(1, 8);
  host_.connect(1, 9);
  EXPECT_THAT(host_.log(), ElementsAre("worker 1 joined", "worker 1 joined"));
}

// ---- the end ----

TEST_F(RangeReplicaTest, EndsOnceTheChiefNeedsNothingMoreAndTheOthersHaveLeft) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run(3), 3);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kGoodbye, .generation = 1}));
  EXPECT_FALSE(host_.take(other)) << "the result is not durable";
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kGoodbye, .generation = 1}));
  expect(host_, chief, FrameKind::kAck);
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kShutdown}));
  expect(host_, chief, FrameKind::kAck);
  expect(host_, other, FrameKind::kAck);
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kGoodbye}));
  EXPECT_FALSE(host_.has_ended());
  host_.hang_up(other);
  EXPECT_TRUE(host_.has_ended());
}

// A trainer found another ps a step behind, and has just requested the state before this step. It
// joins a run that is about to end.
TEST_F(RangeReplicaTest, WhatIsFromBeforeTheLastStepIsNoResult) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run(1));
  ASSERT_TRUE(host_.say(chief, push(0), gradient(1)));
  ASSERT_TRUE(host_.say(other, push(0), gradient(1)));
  expect(host_, chief, FrameKind::kParameters);
  expect(host_, other, FrameKind::kParameters);
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kGoodbye, .generation = 1}));
  ASSERT_TRUE(host_.say(other, net::Pull{.previous = true}.to_header()));
  const auto answer = host_.take(other);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.step, 0U);
  EXPECT_EQ(answer->header.flags & net::kFlagFinished, 0);
  ASSERT_TRUE(host_.say(other, net::Pull{}.to_header()));
  EXPECT_NE(host_.take(other).value_or(SentFrame{}).header.flags & net::kFlagFinished, 0);
}

TEST_F(RangeReplicaTest, NoResultIsReturnedWhileStepsAreMissing) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run(3), 2);
  for (const ConnectionId trainer : {chief, other}) {
    ASSERT_TRUE(host_.say(trainer, {.kind = FrameKind::kGoodbye, .generation = 1}));
    expect(host_, trainer, FrameKind::kFenced);
  }
}

TEST_F(RangeReplicaTest, WhereNotEveryGradientCountsAGoodbyeEndsTheSteps) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  RunConfig config = small_run(3);
  config.sync_replicas = false;
  begin_run(host_, chief, config, 2);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kGoodbye, .generation = 1}));
  EXPECT_FALSE(host_.take(other)) << "ps 0 counts the steps";
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kGoodbye, .generation = 1}));
  expect(host_, chief, FrameKind::kAck);
}

TEST_F(RangeReplicaTest, WithBackupWorkersNoStepIsMadeAfterAGoodbye) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  RunConfig config = small_run(3);
  config.replicas_to_aggregate = 1;
  begin_run(host_, chief, config, 1);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kGoodbye, .generation = 1}));
  ASSERT_TRUE(host_.say(chief, push(1), gradient(1)));
  const auto answer = host_.take(chief);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.kind, FrameKind::kParameters);
  EXPECT_EQ(answer->header.step, 1U);
  EXPECT_EQ(answer->header.flags & (net::kFlagFinished | net::kFlagDropped),
            net::kFlagFinished | net::kFlagDropped);
  EXPECT_EQ(answer->body, Bytes(size_ * sizeof(float))) << "the gradient was used";
}

TEST_F(RangeReplicaTest, EndsByItselfWhenTheChiefDiesAfterShutdown) {
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, small_run(3), 3);
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kShutdown}));
  host_.hang_up(chief);
  host_.pass(seconds(60));
  EXPECT_FALSE(host_.has_ended());
  host_.pass(seconds(2));
  EXPECT_TRUE(host_.has_ended());
}

TEST_F(RangeReplicaTest, OneThatHoldsNothingIsToldToEndToo) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kShutdown}));
  expect(host_, chief, FrameKind::kAck);
  expect(host_, other, FrameKind::kFenced);
  ASSERT_TRUE(host_.say(other, push(0), gradient(1)));
  expect(host_, other, FrameKind::kFenced);
}

// The chief has waited long enough for that trainer, and fetches the result.
TEST_F(RangeReplicaTest, WhatComesAfterTheChiefHasFetchedTheResultIsDropped) {
  RunConfig config = small_run(3);
  config.sync_replicas = false;
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, config);
  ASSERT_TRUE(host_.say(chief, net::Pull{.concludes = true}.to_header()));
  EXPECT_NE(host_.take(chief).value_or(SentFrame{}).header.flags & net::kFlagFinished, 0);
  const ConnectionId other = host_.connect(1, 8);
  net::FrameHeader header = push(0);
  header.sequence = 1;
  ASSERT_TRUE(host_.say(other, header, gradient(1)));
  const auto answer = host_.take(other).value_or(SentFrame{}).header;
  EXPECT_EQ(answer.step, 0U);
  EXPECT_EQ(answer.flags, net::kFlagFinished | net::kFlagDropped);
  EXPECT_FALSE(host_.say(other, net::Pull{.concludes = true}.to_header()));
  EXPECT_EQ(host_.refused().at(other), "only the chief fetches the result");
}

// A replaced chief may have the result of a state that is gone. What another chief has begun since
// is no result.
TEST_F(RangeReplicaTest, AStateThatIsNoResultIsNotHandedOutAsOne) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(other, push(0), gradient(1)));
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kShutdown}));
  expect(host_, chief, FrameKind::kAck);
  expect(host_, other, FrameKind::kFenced);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  expect(host_, other, FrameKind::kFenced);
}

// The same, for a push in flight that only needs an answer.
TEST_F(RangeReplicaTest, NorIsARepeatAnsweredWithIt) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  const Bytes body = gradient(1);
  ASSERT_TRUE(host_.say(other, push(0), body));
  const BodyPlan plan = host_.begin(other, push(0), body.size());
  ASSERT_EQ(plan.next, BodyPlan::Next::kDiscard);
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kShutdown}));
  expect(host_, chief, FrameKind::kAck);
  expect(host_, other, FrameKind::kFenced);  // the first one waited
  ASSERT_TRUE(host_.deliver(other, plan, body));
  expect(host_, other, FrameKind::kFenced);
}

// If not every gradient counts, any step may be the last, and each state numbers its own steps.
TEST_F(RangeReplicaTest, WhereNotEveryGradientCountsTheResultIsOfOneGeneration) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  RunConfig config = small_run(3);
  config.sync_replicas = false;
  begin_run(host_, chief, config, 3, /*generation=*/2);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kGoodbye, .generation = 2}));
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kShutdown, .generation = 1}));
  expect(host_, chief, FrameKind::kAck);
  expect(host_, other, FrameKind::kFenced);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  expect(host_, other, FrameKind::kFenced);
  const auto welcome = host_.core.welcome(
      {.cluster = {}, .from = task_.cluster.trainer(0), .to = task_.self, .incarnation = 7});
  EXPECT_EQ(std::get<net::Welcome>(welcome).generation, 1U) << "a chief that comes late tells it";
}

// Another host has answered the chief, and this one has taken over since.
TEST_F(RangeReplicaTest, WhereNotEveryGradientCountsTheResultIsOfOneStep) {
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{0}}) {
    ReplicaHost host(task_);
    const ConnectionId chief = host.connect(0, 7);
    const ConnectionId other = host.connect(1, 8);
    RunConfig config = small_run(3);
    config.sync_replicas = false;
    begin_run(host, chief, config, 2);
    ASSERT_TRUE(host.say(chief, net::Shutdown{.step = step, .generation = 1}.to_header()));
    expect(host, chief, FrameKind::kAck);
    ASSERT_TRUE(host.say(other, net::Pull{}.to_header()));
    expect(host, other, step == 0 ? FrameKind::kParameters : FrameKind::kFenced);
  }
}

TEST_F(RangeReplicaTest, WhereNotEveryGradientCountsTheResultIsHandedOut) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  RunConfig config = small_run(3);
  config.sync_replicas = false;
  begin_run(host_, chief, config, 3, /*generation=*/2);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kGoodbye, .generation = 2}));
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kShutdown, .generation = 2}));
  expect(host_, chief, FrameKind::kAck);
  expect(host_, other, FrameKind::kAck);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  expect_parameters(host_, other, 3, 0);
}

}  // namespace
}  // namespace disttf::roles
