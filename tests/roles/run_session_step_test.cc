// A trainer's core: a step, and how it handles heartbeat timeouts, lost ps and their answers
// meanwhile.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/roles/run_session_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameKind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// ----------------------------------------------------------------------------------------- steps

TEST_F(RunSessionTest, AStepIsOneRequestToEachPs) {
  join();
  begin_push();
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().reply().step, 6U);
  EXPECT_FALSE(session().reply().joined);
  EXPECT_EQ(session().range(0).acknowledged(), 1U);
  const auto heard = world_.heard();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[1].header.range_begin, session().range(1).range.begin);
  EXPECT_EQ(heard[0].header.step, 5U);
  EXPECT_EQ(heard[0].header.generation, 3U);
}

TEST_F(RunSessionTest, ARequestThatWasBegunEarlierKeepsItsNumber) {
  join();
  const net::FrameHeader ahead = session().push_header_ahead(0, 1, false);
  begin_push();
  world_.go_on();
  EXPECT_EQ(world_.heard().front().header, ahead);
}

TEST_F(RunSessionTest, AnotherRequestBehindOneThatWasBegunNeedsANewLink) {
  join();
  static_cast<void>(session().push_header_ahead(0, 1, false));
  session().begin_peek(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(1)), Outcome::kDone);
  EXPECT_EQ(world_.dials().size(), 1U);
}

TEST_F(RunSessionTest, ALostLinkIsOpenedAgainAndTheRequestRepeated) {
  join();
  world_.host(1).is_mute = true;
  begin_push();
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  const net::FrameHeader first = world_.heard().back().header;
  world_.host(1).hold(5, 3);  // since it has not applied it
  world_.host(1).is_mute = false;
  world_.cut(1);
  ASSERT_EQ(world_.go_on_for(seconds(1)), Outcome::kDone);
  const net::FrameHeader second = world_.heard().back().header;
  EXPECT_EQ(second.sequence, first.sequence);
  EXPECT_EQ(second.step, first.step);
  EXPECT_GT(second.request_id, first.request_id);
  EXPECT_THAT(world_.log(), HasSubstr("ps 1 (ps1:1) is back after "));
}

// The replaced process is still alive and sends heartbeats, but would never answer: the others push
// to the new one.
TEST_F(RunSessionTest, ALinkToAPsThatWasReplacedWhileItLivesIsGivenUp) {
  join();
  world_.host(1).is_mute = true;
  begin_push();
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  session().is_replaced(1, 2, world_.now());
  EXPECT_TRUE(world_.is_open(1)) << "that was said of an older generation";
  session().is_replaced(2, 3, world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
  EXPECT_TRUE(world_.is_open(1)) << "that was another ps";
  world_.host(1) = {};
  world_.host(1).restart(200);
  session().is_replaced(1, 3, world_.now());
  world_.go_on();
  EXPECT_THAT(world_.log(), HasSubstr("ps 1 (ps1:1) was lost"));
  world_.go_on_for(milliseconds(100));
  EXPECT_THAT(world_.log(), HasSubstr("joining the run again"));
}

TEST_F(RunSessionTest, AFenceMeansThatTheRunIsJoinedAgain) {
  join();
  world_.host(0).hold(2, 4);
  world_.host(1).hold(2, 4);
  begin_push();
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  EXPECT_EQ(session().reply().step, 2U);
  EXPECT_EQ(session().reply().generation, 4U);
  EXPECT_THAT(world_.log(), HasSubstr("joining the run again"));
}

TEST_F(RunSessionTest, AnotherProcessInAPssPlaceMeansTheSame) {
  join();
  session().lead();
  world_.kill(1);
  world_.host(1).restart(200);
  begin_push();
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kNeedsState);
  session().provided(5, world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_EQ(session().reply().generation, 4U);
}

TEST_F(RunSessionTest, WhoSaysNothingIsDeadAndWhoBeatsIsNot) {
  join();
  world_.host(0).is_mute = true;
  world_.host(1).is_mute = true;
  begin_push();
  for (int beat = 0; beat < 3; ++beat) {
    EXPECT_EQ(world_.go_on_for(seconds(4)), Outcome::kUnderWay);
    world_.say(0, {.kind = FrameKind::kHeartbeat});
  }
  EXPECT_THAT(world_.log(), HasSubstr("ps 1 (ps1:1) was lost"));
  EXPECT_THAT(world_.log(), Not(HasSubstr("ps 0 (ps0:1) was lost")));
}

TEST_F(RunSessionTest, TheHeartbeatTimeoutIsCountedFromWhenTheRequestHasLeft) {
  join();
  world_.host(0).is_mute = true;
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  session().sent(0, world_.now() + seconds(5));
  session().sent(1, world_.now() + seconds(5));
  EXPECT_EQ(session().deadline(), world_.now() + seconds(15));
}

TEST_F(RunSessionTest, AFreezeDoesNotCountTowardTheHeartbeatTimeout) {
  join();
  world_.host(0).is_mute = true;
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on_for(seconds(9));
  session().forgive(seconds(5));
  world_.go_on_for(seconds(5));
  EXPECT_THAT(world_.log(), Not(HasSubstr("was lost")));
  world_.go_on_for(seconds(1));
  EXPECT_THAT(world_.log(), HasSubstr("was lost"));
}

TEST_F(RunSessionTest, AnAnswerToAnotherRequestNeedsANewLink) {
  join();
  world_.host(0).is_mute = true;
  begin_push();
  world_.go_on();
  world_.host(0).is_mute = false;
  world_.host(0).hold(5, 3);
  world_.say(0, {.kind = FrameKind::kParameters, .request_id = 1, .step = 6, .generation = 3});
  ASSERT_EQ(world_.go_on_for(seconds(1)), Outcome::kDone);
  EXPECT_EQ(world_.dials().size(), 1U);
}

TEST_F(RunSessionTest, ALostPsIsGivenUpWhenItsTimeIsOver) {
  join();
  world_.host(0).is_mute = true;
  begin_push();
  world_.go_on();
  world_.kill(0);
  EXPECT_EQ(world_.go_on_for(seconds(60) - milliseconds(1)), Outcome::kUnderWay);
  world_.go_on_for(milliseconds(1));
  expect_failure(kLostPeers, "ps 0 (ps0:1) has been gone for 60 s: Connection refused");
}

TEST_F(RunSessionTest, AFreezeDoesNotCountAsADisconnection) {
  join();
  world_.host(0).is_mute = true;
  begin_push();
  world_.go_on();
  world_.kill(0);
  world_.go_on_for(seconds(30));
  session().forgive(seconds(20));
  EXPECT_EQ(world_.go_on_for(seconds(50) - milliseconds(1)), Outcome::kUnderWay);
  EXPECT_EQ(world_.go_on_for(milliseconds(1)), Outcome::kFailed);
}

TEST_F(RunSessionTest, WhoHasAnsweredAndIsReplacedMeansThatTheRunIsJoinedAgain) {
  join();
  world_.host(1).is_mute = true;  // waits for another trainer's gradient
  begin_push();
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  EXPECT_TRUE(session().reads(0)) << "it is watched";
  world_.host(0).restart(200);
  world_.host(0).hold(2, 4);
  world_.host(1).hold(2, 4);
  world_.host(1).is_mute = false;
  world_.cut(0);
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  EXPECT_EQ(session().reply().step, 2U);
}

TEST_F(RunSessionTest, WhoHasAnsweredAndIsBackIsNotAskedAgain) {
  join();
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  world_.heard();
  world_.cut(0);
  EXPECT_EQ(world_.go_on_for(milliseconds(500)), Outcome::kUnderWay);
  EXPECT_EQ(world_.dials().size(), 1U);
  EXPECT_TRUE(world_.is_open(0));
  EXPECT_THAT(world_.received_by(0), ElementsAre());
  EXPECT_THAT(world_.log(), HasSubstr("ps 0 (ps0:1) is back after "));
  world_.say(1, {.kind = FrameKind::kParameters,
                 .request_id = world_.last_id(1),
                 .step = 6,
                 .generation = 3});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().reply().joined);
  EXPECT_EQ(session().range(0).acknowledged(), 1U);
}

TEST_F(RunSessionTest, APsThatHasAnsweredIsNotAwaited) {
  join();
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  world_.kill(0);
  EXPECT_EQ(world_.go_on_for(seconds(5)), Outcome::kUnderWay);
  world_.say(1, {.kind = FrameKind::kParameters,
                 .request_id = world_.last_id(1),
                 .step = 6,
                 .generation = 3});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().reply().joined);
}

TEST_F(RunSessionTest, WhoHasAnsweredAndIsGoneIsGivenUpWhenItsTimeIsOver) {
  join();
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  world_.kill(0);
  for (int beat = 0; beat < 70; ++beat) {
    world_.say(1, {.kind = FrameKind::kHeartbeat});
    world_.go_on_for(seconds(1));
  }
  expect_failure(kLostPeers, "ps 0 (ps0:1) has been gone for 60 s");
}

// The answers of the other ps may depend on the process that replaces this one.
TEST_F(RunSessionTest, WhoHasAnsweredAndFreezesIsLostAsIfItHadNot) {
  join();
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  ASSERT_TRUE(world_.is_open(0));
  for (int beat = 0; beat < 20; ++beat) {
    world_.say(1, {.kind = FrameKind::kHeartbeat});
    world_.go_on_for(seconds(1));
  }
  EXPECT_TRUE(world_.is_open(0)) << "it returns heartbeats";
  world_.host(0).is_mute = true;
  world_.host(0).is_up = false;  // dials get no answer
  for (int beat = 0; beat < 11; ++beat) {
    world_.say(1, {.kind = FrameKind::kHeartbeat});
    world_.go_on_for(seconds(1));
  }
  EXPECT_FALSE(world_.is_open(0));
  EXPECT_THAT(world_.log(), HasSubstr("ps 0 (ps0:1) was lost"));
}

TEST_F(RunSessionTest, ALinkToWhoHasAnsweredIsKeptInUse) {
  join();
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  world_.heard();
  world_.go_on_for(milliseconds(2500));
  EXPECT_THAT(world_.received_by(0), ElementsAre(FrameKind::kHeartbeat, FrameKind::kHeartbeat))
      << "else the loss of its machine would not be noticed";
}

TEST_F(RunSessionTest, WhatWasPulledBeforeAPsWasReplacedDoesNotGoWithWhatComesLater) {
  for (const std::size_t range : {0U, 1U}) {
    world_.host(range).hold(5, 3);
  }
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  world_.host(1).is_mute = true;
  session().begin_pull(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  world_.host(0).restart(200);
  world_.host(0).hold(5, 4);
  world_.host(1).hold(5, 4);
  world_.host(1).is_mute = false;
  world_.heard();
  world_.cut(0);
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_THAT(world_.received_by(0), ElementsAre(FrameKind::kPull));
  EXPECT_EQ(session().reply().generation, 4U);
}

// A ps that already has this trainer's gradient of the next step answers a repeat of this one with
// the parameters after both.
TEST_F(RunSessionTest, NoGradientIsComputedOfTwoSteps) {
  join();
  world_.host(1).is_ahead = true;
  begin_push();
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_TRUE(session().reply().same_step);
  EXPECT_TRUE(session().reply().joined) << "what it has pushed is not what it goes on from";
  EXPECT_EQ(session().reply().step, 6U);
}

TEST_F(RunSessionTest, WhereNotEveryGradientCountsEachPsHasItsOwnStep) {
  join({.size = kFloats, .fully_synchronous = false});
  world_.host(1).is_ahead = true;
  begin_push();
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().reply().joined);
}

TEST_F(RunSessionTest, ARefusedPushEndsTheTrainer) {
  join();
  world_.host(0).refuses = net::Refusal{.exit_code = kLostPeers, .sentence = "worker 1 is gone"};
  world_.host(0).is_mute = true;
  begin_push();
  world_.go_on();
  world_.say(0, {.kind = FrameKind::kRefused, .body_size = 20});
  world_.go_on();
  expect_failure(kLostPeers, "refused by ps 0 (ps0:1): worker 1 is gone");
}

// --------------------------------------------------------------------------------------- replicas

TEST_F(RunSessionTest, TheOtherHostIsTriedAndAskedInstead) {
  join_with_replicas();
  world_.host(0).is_mute = true;
  begin_push();
  world_.go_on();
  world_.heard();
  world_.host(0, 1).welcome.replica_role = net::ReplicaRole::kPrimary;
  world_.kill(0);
  world_.host(0).is_up = true;
  world_.host(0).swallows = true;
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  const auto dials = world_.dials();
  ASSERT_EQ(dials.size(), 2U);
  EXPECT_EQ(dials[0].replica, 0);
  EXPECT_EQ(dials[1].replica, 1);
  EXPECT_EQ(dials[1].host.index, 1U);
  EXPECT_EQ(dials[1].until - dials[0].until, seconds(1)) << "who swallows packets has a second";
  auto heard = world_.heard();
  std::erase_if(heard, [](const ReceivedRequest& each) { return each.range == 1; });
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].header.kind, FrameKind::kPushPull);
  EXPECT_EQ(heard[0].replica, 1);
  EXPECT_FALSE(session().reply().joined);
}

// A host whose copy lacks that answer then does not continue with its copy.
TEST_F(RunSessionTest, AHostIsToldWhatTheRangeHasLastAnswered) {
  join_with_replicas();
  begin_push();
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  world_.host(0, 1).welcome.replica_role = net::ReplicaRole::kPrimary;
  world_.kill(0);
  world_.dials();
  session().begin_push_pull(2, false, world_.now());
  world_.go_on_for(seconds(3));
  for (const Dial& dial : world_.dials()) {
    EXPECT_EQ(dial.last, (net::LastAnswer{.generation = 3, .step = 6, .push = 1}));
  }
}

TEST_F(RunSessionTest, WhoHasAnsweredIsReachedAgainAndNotAsked) {
  join_with_replicas();
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  world_.heard();
  world_.host(0, 1).welcome.replica_role = net::ReplicaRole::kPrimary;
  world_.kill(0);
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kUnderWay);
  EXPECT_THAT(world_.received_by(0), testing::Each(FrameKind::kHeartbeat));
  EXPECT_TRUE(session().reads(0));
}

TEST_F(RunSessionTest, ABackupIsAskedAgainUntilItIsMadeThePrimary) {
  join_with_replicas();
  world_.host(0).is_mute = true;
  begin_push();
  world_.go_on();
  world_.kill(0);
  EXPECT_EQ(world_.go_on_for(seconds(2)), Outcome::kUnderWay);
  world_.host(0, 1).welcome.replica_role = net::ReplicaRole::kPrimary;
  EXPECT_EQ(world_.go_on_for(milliseconds(100)), Outcome::kDone)
      << "pauses are short where another host is there";
}

TEST_F(RunSessionTest, APsWithoutReplicasIsNotTakenForOneThatHasThem) {
  world_.host(0).hold(0, 1);
  session().expect_replicas(true);
  session().begin_connect(world_.now());
  world_.go_on();
  expect_failure(kUsage, "--ps_replicas: 2 is not allowed here");
  EXPECT_FALSE(world_.is_open(0));
}

// ---------------------------------------------------------------------------------------- elastic

TEST_F(RunSessionTest, WorkThatIsMissingIsAskedFor) {
  join({.size = kFloats, .elastic = true});
  world_.host(0).is_mute = true;
  world_.host(1).is_mute = true;
  session().push(0);
  world_.go_on();
  session().begin_await_step(1, false, world_.now());
  world_.go_on();
  world_.heard();
  const std::uint64_t awaited = world_.last_id(0);
  world_.say(0, {.kind = FrameKind::kWork, .request_id = awaited, .sequence = 2});
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsWork);
  EXPECT_THAT(session().work(), ElementsAre(2));
  const std::uint64_t id = world_.last_id(1);
  world_.say(1, {.kind = FrameKind::kParameters, .request_id = id, .step = 6, .generation = 3});
  session().begin_await_step(1, false, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  world_.say(0, {.kind = FrameKind::kWork, .request_id = awaited, .sequence = 3});
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsWork);
  session().push(3);
  world_.go_on();
  session().begin_await_step(1, false, world_.now());
  world_.go_on();
  EXPECT_THAT(world_.received_by(0), ElementsAre(FrameKind::kPush));
  EXPECT_THAT(world_.received_by(1), ElementsAre()) << "has made the step";
  world_.say(0,
             {.kind = FrameKind::kParameters, .request_id = awaited, .step = 6, .generation = 3});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().reply().step, 6U);
}

// Other trainers made its step, and the trainer saw that answer, which a ps leaves in memory,
// first.
TEST_F(RunSessionTest, WorkThatWasAskedForByAnEarlierPullIsNotDone) {
  join({.size = kFloats, .elastic = true});
  world_.host(0).is_mute = true;
  session().begin_await_step(1, false, world_.now());
  world_.go_on();
  const std::uint64_t awaited = world_.last_id(0);
  world_.say(0, {.kind = FrameKind::kWork, .request_id = awaited - 1, .sequence = 2});
  EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
  world_.say(0, {.kind = FrameKind::kWork, .request_id = awaited, .sequence = 2});
  EXPECT_EQ(world_.go_on(), Outcome::kNeedsWork);
}

TEST_F(RunSessionTest, AnElasticStepIsNotRepeatedButTheRunJoinedAgain) {
  join({.size = kFloats, .elastic = true});
  world_.host(0).is_mute = true;
  session().begin_await_step(1, false, world_.now());
  world_.go_on();
  world_.host(0).is_mute = false;
  world_.cut(0);
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
}

TEST_F(RunSessionTest, APushThatDidNotLeaveMeansThatTheRunIsJoinedAgain) {
  join({.size = kFloats, .elastic = true});
  session().push(0);
  world_.cut(1);
  world_.go_on();
  session().begin_await_step(1, false, world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
}

TEST_F(RunSessionTest, SoDoesWorkThatDidNotLeave) {
  join({.size = kFloats, .elastic = true});
  world_.host(0).is_mute = true;
  session().begin_await_step(1, false, world_.now());
  world_.go_on();
  world_.say(0, {.kind = FrameKind::kWork, .request_id = world_.last_id(0), .sequence = 2});
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsWork);
  world_.host(0).is_mute = false;
  session().push(2);
  world_.cut(0);
  world_.go_on();
  session().begin_await_step(1, false, world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
}

}  // namespace
}  // namespace disttf::roles
