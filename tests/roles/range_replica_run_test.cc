// A ps's core as a run begins: what an earlier run or half a state leaves behind.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/wire/messages.h"
#include "net/wire/snapshot_messages.h"
#include "tests/roles/range_replica_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameKind;

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

// Closed before the new run's first state arrives, which overwrites what may still be in flight.
TEST_F(RangeReplicaTest, ANewRunClosesWhoMayStillBeSentWhatTheOldOneHeld) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  expect_parameters(host_, other, 0, 0);
  host_.begin(chief, {.kind = FrameKind::kRestore, .generation = 2}, size_ * sizeof(float));
  host_.hang_up(chief);
  EXPECT_FALSE(host_.is_closed(other)) << "the newest parameters stay where they are";
  const ConnectionId next = host_.connect(0, 9);
  const std::string published = to_json(small_run(/*train_steps=*/9));
  ASSERT_TRUE(host_.say(next, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published))));
  expect(host_, next, FrameKind::kAck);
  EXPECT_TRUE(host_.is_closed(other));
  EXPECT_FALSE(host_.is_closed(next));
}

// A host of a range in a run that stops early.

// Gradients that have arrived already have no effect.
TEST_F(RangeReplicaTest, WhoWaitsForAStepThatIsNotMadeHasTheResult) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(other, push(0), gradient(1)));
  ASSERT_FALSE(host_.take(other).has_value());
  ASSERT_TRUE(host_.say(chief, net::Pull{.concludes = true}.to_header()));
  for (const ConnectionId each : {chief, other}) {
    const auto answer = host_.take(each).value_or(SentFrame{}).header;
    EXPECT_EQ(answer.kind, FrameKind::kParameters);
    EXPECT_EQ(answer.step, 0U);
    EXPECT_EQ(answer.flags, net::kFlagFinished);
  }
  ASSERT_TRUE(host_.say(chief, push(0), gradient(1)));
  EXPECT_EQ(host_.take(chief).value_or(SentFrame{}).header.step, 0U) << "nor does one that is late";
  ASSERT_TRUE(host_.say(other, net::Goodbye{.generation = 1}.to_header()));
  ASSERT_TRUE(host_.say(chief, net::Goodbye{.generation = 1}.to_header()));
  expect(host_, chief, FrameKind::kAck);
}

TEST_F(RangeReplicaTest, NoWorkerIsMissedAfterAnEarlyStop) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  host_.hang_up(other);
  ASSERT_TRUE(host_.say(chief, net::Pull{.concludes = true}.to_header()));
  host_.pass(ReplicaHost::Seconds(25));
  EXPECT_EQ(host_.core.overdue(host_.now()), std::nullopt);
}

TEST_F(RangeReplicaTest, AStateMayBeSetAsTheResultOfARunThatHasEndedEarly) {
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(chief,
                        net::Restore{.step = 2, .generation = 2, .finished = true}.to_header(),
                        Bytes(size_ * sizeof(float))));
  expect(host_, chief, FrameKind::kAck);
  const ConnectionId other = host_.connect(1, 8);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  EXPECT_EQ(host_.take(other).value_or(SentFrame{}).header.flags, net::kFlagFinished);
  ASSERT_TRUE(host_.say(chief, net::Restore{.step = 1, .generation = 3}.to_header(),
                        Bytes(size_ * sizeof(float))));
  expect(host_, chief, FrameKind::kAck);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  EXPECT_EQ(host_.take(other).value_or(SentFrame{}).header.flags, 0) << "that is taken back";
}

TEST_F(RangeReplicaTest, TheBestEvaluationIsTheNewestThatWasTold) {
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, small_run());
  const auto tell = [&](const net::Best& best) {
    net::Best answer;
    EXPECT_TRUE(host_.say(chief, best.to_header()));
    EXPECT_FALSE(answer.from_header(host_.take(chief).value_or(SentFrame{}).header));
    return answer;
  };
  EXPECT_EQ(tell({.request_id = 4}), (net::Best{.request_id = 4}));
  EXPECT_EQ(tell({.request_id = 5, .step = 20, .loss = 0.5}).loss, 0.5);
  EXPECT_EQ(tell({.request_id = 6, .step = 10, .loss = 0.75}),
            (net::Best{.request_id = 6, .step = 20, .loss = 0.5}));
  const ConnectionId other = host_.connect(1, 8);
  EXPECT_FALSE(host_.say(other, net::Best{.step = 30}.to_header()));
  EXPECT_EQ(host_.refused().at(other), "only the chief judges evaluations");
}

// A range and an evaluator, which delays no other process.

class RangeReplicaEvaluator : public RangeReplicaTest {
 protected:
  ConnectionId evaluator(ReplicaHost& host, std::uint64_t process = 9) const {
    return host.connect({.cluster = {},
                         .from = {.job = net::Job::kEvaluator, .index = 0},
                         .to = task_.self,
                         .purpose = net::ChannelPurpose::kState,
                         .incarnation = process});
  }
  bool watch(ReplicaHost& host, ConnectionId id, std::uint64_t step) {
    return host.say(id, net::Watch{.request_id = ++requests_, .step = step}.to_header());
  }
  // A run of two trainers that has begun.
  void begin() {
    chief_ = host_.connect(0, 7);
    worker_ = host_.connect(1, 8);
    begin_run(host_, chief_, small_run());
  }
  void make_step(std::uint64_t step) {
    for (const ConnectionId trainer : {chief_, worker_}) {
      ASSERT_TRUE(host_.say(trainer, push(step), gradient(1)));
    }
  }
  // Expects that the evaluator was sent the snapshot shard of this step, whose first float is
  // `value`.
  static void expect_snapshot(ReplicaHost& host, ConnectionId id, std::uint64_t step, float value,
                              bool is_result = false) {
    const auto frame = host.take(id);
    ASSERT_TRUE(frame.has_value());
    net::SnapshotShardReply snapshot;
    ASSERT_FALSE(snapshot.from_header(frame->header));
    EXPECT_EQ(snapshot.step, step);
    EXPECT_EQ(snapshot.generation, 1U);
    EXPECT_EQ(snapshot.is_result, is_result);
    float first = 0;
    ASSERT_GE(frame->body.size(), sizeof first);
    std::memcpy(&first, frame->body.data(), sizeof first);
    EXPECT_EQ(first, value);
  }

  ConnectionId chief_ = 0;
  ConnectionId worker_ = 0;
  std::uint64_t requests_ = 0;
};

TEST_F(RangeReplicaEvaluator, IsSentTheStepThatItWaitsForOnceItIsMade) {
  begin();
  const ConnectionId id = evaluator(host_);
  ASSERT_TRUE(watch(host_, id, 2));
  make_step(0);
  EXPECT_FALSE(host_.take(id).has_value());
  make_step(1);
  expect_snapshot(host_, id, 2, -2);
  EXPECT_FALSE(host_.take(id).has_value());  // sent only once
}

TEST_F(RangeReplicaEvaluator, IsSentANewerStepAtOnce) {
  begin();
  make_step(0);
  const ConnectionId id = evaluator(host_);
  ASSERT_TRUE(watch(host_, id, 0));
  expect_snapshot(host_, id, 1, -1);
}

TEST_F(RangeReplicaEvaluator, WhatItIsSentDoesNotMoveOn) {
  begin();
  const ConnectionId id = evaluator(host_);
  ASSERT_TRUE(watch(host_, id, 1));
  make_step(0);
  make_step(1);
  expect_snapshot(host_, id, 1, -1);
}

TEST_F(RangeReplicaEvaluator, ANewerWishTakesThePlaceOfTheOneBefore) {
  begin();
  const ConnectionId id = evaluator(host_);
  ASSERT_TRUE(watch(host_, id, 3));
  ASSERT_TRUE(watch(host_, id, 1));
  make_step(0);
  expect_snapshot(host_, id, 1, -1);
  make_step(1);
  make_step(2);
  EXPECT_FALSE(host_.take(id).has_value());
}

TEST_F(RangeReplicaEvaluator, IsSentTheResultWhenTheRunIsOver) {
  begin();
  const ConnectionId id = evaluator(host_);
  ASSERT_TRUE(watch(host_, id, 1000));
  for (std::uint64_t step = 0; step < 3; ++step) {
    make_step(step);
  }
  EXPECT_FALSE(host_.take(id).has_value());  // the step may be made again from an earlier snapshot
  ASSERT_TRUE(host_.say(chief_, {.kind = FrameKind::kShutdown}));
  expect_snapshot(host_, id, 3, -3, /*is_result=*/true);
}

TEST_F(RangeReplicaEvaluator, IsToldThatThereIsNoResultHere) {
  chief_ = host_.connect(0, 7);
  const ConnectionId id = evaluator(host_);
  ASSERT_TRUE(watch(host_, id, 1));
  ASSERT_TRUE(host_.say(chief_, {.kind = FrameKind::kShutdown}));
  expect(host_, id, FrameKind::kAck);
}

TEST_F(RangeReplicaEvaluator, IsToldTheConfigurationOnceThereIsOne) {
  const ConnectionId id = evaluator(host_);
  ASSERT_TRUE(host_.say(id, {.kind = FrameKind::kGetConfig}));
  expect(host_, id, FrameKind::kAck);
  begin();
  ASSERT_TRUE(host_.say(id, {.kind = FrameKind::kGetConfig}));
  const auto frame = host_.take(id);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->header.kind, FrameKind::kConfig);
  EXPECT_FALSE(frame->body.empty());
}

TEST_F(RangeReplicaEvaluator, SeveralMayWatchAndEachIsSentWhatItAsksFor) {
  begin();
  const ConnectionId one = evaluator(host_, 9);
  const ConnectionId other = evaluator(host_, 10);
  ASSERT_TRUE(watch(host_, one, 1));
  ASSERT_TRUE(watch(host_, other, 2));
  make_step(0);
  expect_snapshot(host_, one, 1, -1);
  EXPECT_FALSE(host_.take(other).has_value());
  ASSERT_TRUE(watch(host_, one, 2));
  make_step(1);
  expect_snapshot(host_, one, 2, -2);
  expect_snapshot(host_, other, 2, -2);
  ASSERT_TRUE(watch(host_, one, 1000));
  ASSERT_TRUE(watch(host_, other, 1000));
  make_step(2);
  ASSERT_TRUE(host_.say(chief_, {.kind = FrameKind::kShutdown}));
  expect_snapshot(host_, one, 3, -3, /*is_result=*/true);
  expect_snapshot(host_, other, 3, -3, /*is_result=*/true);
}

TEST_F(RangeReplicaEvaluator, OneTooManyTakesThePlaceOfTheOldest) {
  begin();
  std::vector<ConnectionId> ids;
  for (std::uint64_t process = 1; process <= 9; ++process) {
    ids.push_back(evaluator(host_, 100 + process));
    ASSERT_TRUE(watch(host_, ids.back(), 1));
    EXPECT_EQ(host_.is_closed(ids.front()), process == 9) << process;
  }
  make_step(0);
  EXPECT_FALSE(host_.take(ids.front()).has_value());
  for (std::size_t each = 1; each < ids.size(); ++each) {
    expect_snapshot(host_, ids[each], 1, -1);
  }
}

TEST_F(RangeReplicaEvaluator, ANewChannelOfAProcessTakesThePlaceOfItsOldOne) {
  begin();
  const ConnectionId old = evaluator(host_);
  ASSERT_TRUE(watch(host_, old, 1));
  const ConnectionId id = evaluator(host_);
  EXPECT_TRUE(host_.is_closed(old));
  make_step(0);
  EXPECT_FALSE(host_.take(old).has_value());
  ASSERT_TRUE(watch(host_, id, 1));
  expect_snapshot(host_, id, 1, -1);
}

TEST_F(RangeReplicaEvaluator, OneThatIsGoneIsForgotten) {
  begin();
  const ConnectionId id = evaluator(host_);
  ASSERT_TRUE(watch(host_, id, 1));
  host_.hang_up(id);
  make_step(0);
  EXPECT_FALSE(host_.take(id).has_value());
  host_.pass(ReplicaHost::Seconds(3));
  EXPECT_TRUE(host_.refused().empty());
}

TEST_F(RangeReplicaEvaluator, MayAskForNothingElse) {
  begin();
  const ConnectionId id = evaluator(host_);
  EXPECT_FALSE(host_.say(id, {.kind = FrameKind::kPull}));
  EXPECT_EQ(host_.refused().at(id),
            "an evaluator may request the configuration and snapshot shards only");
}

}  // namespace
}  // namespace disttf::roles
