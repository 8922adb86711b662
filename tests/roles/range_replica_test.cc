// A ps's core in time that the test makes: what it answers to whom, and when it gives somebody up.
#include "roles/ps/core/range_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <vector>

#include "math/model.h"
#include "tests/roles/replica_host.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::seconds;
using ::testing::HasSubstr;

class RangeReplicaTest : public testing::Test {
 protected:
  // Publishes, and restores to zeros at this step.
  void begin_run(ReplicaHost& host, ConnectionId chief, const RunConfig& config,
                 std::uint64_t step = 0, std::uint32_t generation = 1) {
    const std::string published = to_json(config);
    ASSERT_TRUE(
        host.say(chief, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published))));
    expect(host, chief, FrameKind::kAck);
    ASSERT_TRUE(host.say(chief,
                         {.kind = FrameKind::kRestore, .step = step, .generation = generation},
                         Bytes(size_ * sizeof(float))));
    expect(host, chief, FrameKind::kAck);
  }
  [[nodiscard]] Bytes gradient(float value) const {
    const std::vector<float> values(size_, value);
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }
  static FrameHeader push(std::uint64_t step, std::uint32_t generation = 1) {
    return {.kind = FrameKind::kPushPull,
            .request_id = 10 + step,
            .step = step,
            .sequence = step + 1,
            .generation = generation};
  }
  static void expect(ReplicaHost& host, ConnectionId id, FrameKind kind) {
    const auto frame = host.take(id);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->header.kind, kind);
  }
  // The parameters, all alike, of that step.
  static void expect_parameters(ReplicaHost& host, ConnectionId id, std::uint64_t step,
                                float value) {
    const auto frame = host.take(id);
    ASSERT_TRUE(frame.has_value());
    ASSERT_EQ(frame->header.kind, FrameKind::kParameters);
    EXPECT_EQ(frame->header.step, step);
    float first = 0;
    std::memcpy(&first, frame->body.data(), sizeof first);
    EXPECT_EQ(first, value);
  }

  const Task task_ = task_of_ps(0);
  const std::size_t size_ = math::layout_of(small_run().model).size();
  ReplicaHost host_{task_};
};

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

// Else it would be taken for an answered push of the new state, which does not have it.
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

// The chief names a new generation each time.
TEST_F(RangeReplicaTest, ACopyOfARestoreIsFenced) {
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kRestore, .step = 1, .generation = 1},
                        Bytes(size_ * sizeof(float))));
  expect(host_, chief, FrameKind::kFenced);
  EXPECT_EQ(host_.core.shard()->step(), 0);
}

TEST_F(RangeReplicaTest, ARestoreThatBreaksOffLeavesNoState) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  host_.begin(chief, {.kind = FrameKind::kRestore, .generation = 2}, size_ * sizeof(float));
  host_.hang_up(chief);
  ASSERT_TRUE(host_.say(other, push(0), gradient(4)));
  expect(host_, other, FrameKind::kFenced);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  EXPECT_FALSE(host_.take(other)) << "there is nothing to answer with before the chief is back";
  begin_run(host_, host_.connect(0, 7), small_run(), 0, 3);
  expect_parameters(host_, other, 0, 0);
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

TEST_F(RangeReplicaTest, WhoHasHadItsReplyKeepsItsConnection) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  for (const std::uint32_t generation : {2U, 3U, 4U}) {
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

TEST_F(RangeReplicaTest, TimeThatTheProcessMissedCountsAgainstNobody) {
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
  EXPECT_FALSE(host_.core.hear(hello, 1, host_.now()));
  EXPECT_THAT(host_.core.hear(hello, 2, host_.now()).value_or(""),
              HasSubstr("the run is in generation 2, this task holds generation 1"));
}

// ---- the end ----

TEST_F(RangeReplicaTest, EndsOnceTheChiefNeedsNothingMoreAndTheOthersHaveLeft) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run(3), 3);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kGoodbye, .step = 3, .generation = 1}));
  EXPECT_FALSE(host_.take(other)) << "the result is not durable";
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kGoodbye, .step = 3, .generation = 1}));
  expect(host_, chief, FrameKind::kAck);
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kShutdown}));
  expect(host_, chief, FrameKind::kAck);
  expect(host_, other, FrameKind::kAck);
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kGoodbye}));
  EXPECT_FALSE(host_.has_ended());
  host_.hang_up(other);
  EXPECT_TRUE(host_.has_ended());
}

TEST_F(RangeReplicaTest, NobodyHasTheResultOfStepsThatAreStillToBeMade) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run(3), 2);
  for (const ConnectionId trainer : {chief, other}) {
    ASSERT_TRUE(host_.say(trainer, {.kind = FrameKind::kGoodbye, .step = 3, .generation = 1}));
    expect(host_, trainer, FrameKind::kFenced);
  }
}

TEST_F(RangeReplicaTest, WhereNotEveryGradientCountsAGoodbyeEndsTheSteps) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  RunConfig config = small_run(3);
  config.sync_replicas = false;
  begin_run(host_, chief, config, 2);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kGoodbye, .step = 3, .generation = 1}));
  EXPECT_FALSE(host_.take(other)) << "ps 0 counts the steps";
  ASSERT_TRUE(host_.say(chief, {.kind = FrameKind::kGoodbye, .step = 3, .generation = 1}));
  expect(host_, chief, FrameKind::kAck);
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

// A chief that was replaced may have the result of a state that is gone: what another one has begun
// since is none.
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

// ---- elastic ----

// The micro-batches that a lost trainer was owed are dealt again, also where another trainer was at
// work when it came back.
TEST_F(RangeReplicaTest, DealsWhatIsMissingOnceNobodyIsAtWork) {
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

// ---- replicas ----

// Range 0 of two: its own ps, and the one after it.
class PairedHosts : public RangeReplicaTest {
 protected:
  void SetUp() override {
    for (ReplicaHost* host : {&first_, &second_}) {
      views_[host] = host->connect(0, 7, net::ChannelPurpose::kView);
      tell(*host, {.number = 1, .primary = 0});
    }
    ASSERT_TRUE(first_.reaches_out());
    chief_ = first_.connect(0, 7);
    other_ = first_.connect(1, 8);
    RunConfig config = small_run();
    config.ps_replicas = 2;
    begin_run(first_, chief_, config);
    ASSERT_TRUE(first_.core.may_fill());
    to_second_ = first_.reach_other();
    from_first_ = second_.connect({.cluster = {},
                                   .from = ps0_.self,
                                   .to = ps1_.self,
                                   .purpose = net::ChannelPurpose::kReplica,
                                   .replica = 1,
                                   .incarnation = ps0_.incarnation});
  }
  // Frames between the two hosts that have not arrived yet.
  void carry() {
    for (bool any = true; any;) {
      any = carry(first_, to_second_, second_, from_first_);
      any = carry(second_, from_first_, first_, to_second_) || any;
    }
  }
  static bool carry(ReplicaHost& from, ConnectionId at, ReplicaHost& to, ConnectionId there) {
    const auto frame = from.take(at);
    if (frame) {
      EXPECT_TRUE(to.say(there, frame->header, frame->body));
    }
    return frame.has_value();
  }
  void tell(ReplicaHost& host, const net::View& view) {
    ASSERT_TRUE(host.say(views_[&host], {.kind = FrameKind::kView}, net::encode(view)));
  }

  const Task ps0_ = task_of_ps(0, 2);
  const Task ps1_ = task_of_ps(1, 2);
  ReplicaHost first_{ps0_, 0};
  ReplicaHost second_{ps1_, 1};
  std::map<ReplicaHost*, ConnectionId> views_;
  ConnectionId chief_ = 0;
  ConnectionId other_ = 0;
  ConnectionId to_second_ = 0;
  ConnectionId from_first_ = 0;
};

TEST_F(PairedHosts, NothingIsAnsweredThatTheBackupHasNot) {
  carry();  // the state, and that it is complete
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  EXPECT_FALSE(first_.take(chief_));
  carry();
  expect_parameters(first_, chief_, 1, -3);
  expect_parameters(first_, other_, 1, -3);
}

TEST_F(PairedHosts, TheBackupGoesOnWithTheSameBits) {
  carry();
  tell(first_, {.number = 2, .primary = 0, .paired = true});
  tell(second_, {.number = 2, .primary = 0, .paired = true});
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  carry();
  expect_parameters(first_, chief_, 1, -3);
  // The first host is gone, before the other trainer has its answer.
  second_.hang_up(from_first_);
  tell(second_, {.number = 3, .primary = 1, .paired = true});
  const ConnectionId again = second_.connect(1, 8);
  ASSERT_TRUE(second_.say(again, push(0), gradient(4)));
  expect_parameters(second_, again, 1, -3);
  const ConnectionId boss = second_.connect(0, 7);
  ASSERT_TRUE(second_.say(again, push(1), gradient(1)));
  ASSERT_TRUE(second_.say(boss, push(1), gradient(3)));
  EXPECT_FALSE(second_.take(again)) << "a pair of which one is left asks the chief first";
  tell(second_, {.number = 4, .primary = 1, .paired = false});
  expect_parameters(second_, again, 2, -5);
}

TEST_F(PairedHosts, ABackupThatIsNotCompleteHasNothingToGoOnWith) {
  second_.hang_up(from_first_);
  tell(second_, {.number = 2, .primary = 1});
  const ConnectionId trainer = second_.connect(1, 8);
  ASSERT_TRUE(second_.say(trainer, push(0), gradient(4)));
  expect(second_, trainer, FrameKind::kFenced);
}

TEST_F(PairedHosts, APrimaryThatWasReplacedServesNobody) {
  carry();
  tell(first_, {.number = 2, .primary = 1});
  EXPECT_TRUE(first_.is_closed(chief_));
  EXPECT_TRUE(first_.is_closed(other_));
  EXPECT_EQ(first_.core.shard(), nullptr);
}

// What waits for a backup that is gone, or slow, is not answered by a primary that is none any
// more.
TEST_F(PairedHosts, APrimaryThatWasReplacedAnswersNothingThatTheOtherLacks) {
  carry();
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  tell(first_, {.number = 2, .primary = 1});
  EXPECT_FALSE(first_.take(chief_));
  EXPECT_FALSE(first_.take(other_));
}

// Its connections are as they were, but whoever connects now, the chief's views among them, reaches
// the process in its place: it would keep its trainers waiting for ever.
TEST_F(PairedHosts, APrimaryThatTheChiefNoLongerTellsViewsSendsItsTrainersAway) {
  carry();
  first_.hang_up(to_second_);
  first_.pass(seconds(9));
  EXPECT_TRUE(first_.say(chief_, {.kind = FrameKind::kHeartbeat}));
  EXPECT_TRUE(first_.say(other_, {.kind = FrameKind::kHeartbeat}));
  first_.hang_up(views_[&first_]);
  for (int second = 0; second < 9; ++second) {
    first_.pass(seconds(1));
    EXPECT_TRUE(first_.say(chief_, {.kind = FrameKind::kHeartbeat}));
    EXPECT_TRUE(first_.say(other_, {.kind = FrameKind::kHeartbeat}));
  }
  EXPECT_FALSE(first_.is_closed(other_)) << "it may connect again";
  first_.pass(seconds(1));
  EXPECT_TRUE(first_.is_closed(chief_));
  EXPECT_TRUE(first_.is_closed(other_));
}

TEST_F(PairedHosts, APrimaryWhoseChiefIsLostKeepsItsTrainers) {
  carry();
  first_.hang_up(to_second_);
  first_.hang_up(views_[&first_]);
  first_.hang_up(chief_);
  for (int second = 0; second < 30; ++second) {
    first_.pass(seconds(1));
    EXPECT_TRUE(first_.say(other_, {.kind = FrameKind::kHeartbeat}));
  }
  first_.connect(0, 77);  // its views come next
  first_.pass(seconds(1));
  EXPECT_FALSE(first_.is_closed(other_));
}

// The chief would make no view of the range any more.
TEST_F(PairedHosts, OneThatHasFailedDoesNotSayThatTheRunIsOver) {
  carry();
  first_.core.refuse_all({.exit_code = kLostPeers, .sentence = "worker 1 has been gone"});
  first_.hang_up(to_second_);
  EXPECT_FALSE(first_.last_report(views_[&first_]).finished);
}

}  // namespace
}  // namespace disttf::roles
