// A trainer's core in time that the test makes: what it says to which ps, what it makes of their
// silence, loss and answers, and when it gives up.
#include "roles/trainer/core/run_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <vector>

#include "tests/roles/fake_ps.h"

namespace disttf::roles {
namespace {

using net::FrameKind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Outcome = RunSession::Outcome;

constexpr std::size_t kFloats = 4096;

Task task_of_trainer(Transport transport = Transport::kTcp) {
  Task task;
  task.cluster.ps = {{.host = "ps0", .port = 1}, {.host = "ps1", .port = 1}};
  task.cluster.workers = {{.host = "w0", .port = 2}, {.host = "w1", .port = 3}};
  task.self = {.job = net::Job::kWorker, .index = 0};
  task.incarnation = 7;
  task.timeouts = {
      .start = seconds(300), .peer = seconds(60), .worker = seconds(20), .silence = seconds(10)};
  task.transport = transport;
  return task;
}

class RunSessionTest : public testing::Test {
 protected:
  // Connected, and joined to what the hosts hold: step 5 of generation 3.
  void join(const RunSession::Run& run = {.size = kFloats}) {
    for (const std::size_t range : {0U, 1U}) {
      world_.host(range).hold(5, 3);
    }
    session().begin_connect(world_.now());
    ASSERT_EQ(world_.go_on(), Outcome::kDone);
    session().prepare(run);
    session().begin_pull(world_.now());
    ASSERT_EQ(world_.go_on(), Outcome::kDone);
    ASSERT_EQ(session().reply().step, 5U);
    world_.heard();
    world_.dials();
  }
  // The same where each range has two hosts, of which the first is the primary.
  void join_with_replicas() {
    for (const std::size_t range : {0U, 1U}) {
      world_.host(range).welcome.standing = net::Standing::kPrimary;
      world_.host(range, 1).welcome = {.incarnation = 100 + range,
                                       .state = net::ShardState::kReady,
                                       .standing = net::Standing::kBackup,
                                       .generation = 3,
                                       .step = 5};
    }
    join({.size = kFloats});
  }
  void begin_push() { session().begin_push_pull(1, false, world_.now()); }
  void expect_failure(int code, const std::string& sentence) {
    ASSERT_EQ(session().outcome(), Outcome::kFailed);
    EXPECT_EQ(session().failure().exit_code(), code);
    EXPECT_THAT(session().failure().what(), HasSubstr(sentence));
  }
  [[nodiscard]] RunSession& session() { return world_.session; }

  const Task task_ = task_of_trainer();
  TrainerWorld world_{task_};
};

// ----------------------------------------------------------------------------------------
// connecting

TEST_F(RunSessionTest, ConnectsToWhoComesUpLater) {
  world_.host(1).is_up = false;
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(200)), Outcome::kUnderWay);
  world_.host(1).is_up = true;
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
}

TEST_F(RunSessionTest, NamesWhoIsMissingOnceTheTimeToStartIsOver) {
  world_.host(1).is_up = false;
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(300) - milliseconds(1)), Outcome::kUnderWay);
  world_.go_on_for(milliseconds(1));
  expect_failure(kLostPeers, "waited 300 s in vain for ps 1 (ps1:1): Connection refused");
}

TEST_F(RunSessionTest, AFreezeWhileConnectingIsForgiven) {
  world_.host(1).is_up = false;
  session().begin_connect(world_.now());
  world_.go_on_for(seconds(100));
  session().forgive(seconds(50));
  EXPECT_EQ(world_.go_on_for(seconds(249)), Outcome::kUnderWay);
  EXPECT_EQ(world_.go_on_for(seconds(1)), Outcome::kFailed);
}

TEST_F(RunSessionTest, ADialThatNobodyAnswersEndsInTime) {
  world_.host(1).swallows = true;
  session().begin_connect(world_.now());
  const auto begin = world_.now();
  world_.go_on_for(seconds(300));
  expect_failure(kLostPeers, "timed out");
  EXPECT_EQ(world_.now(), begin + seconds(300));
  for (const Dial& dial : world_.dials()) {
    EXPECT_LE(dial.until, begin + seconds(300));
  }
}

TEST_F(RunSessionTest, ARefusalEndsTheTrainer) {
  world_.host(0).refuses = net::Refusal{.exit_code = kUsage, .sentence = "another cluster"};
  session().begin_connect(world_.now());
  world_.go_on();
  expect_failure(kUsage, "refused by ps 0 (ps0:1): another cluster");
}

// It may lead to a process that was silent, and whose place another one has taken since.
TEST_F(RunSessionTest, WhoJoinsAgainTrustsNoLinkThatIsOpen) {
  join();
  world_.host(0).restart(500);
  world_.host(0).hold(6, 3);
  world_.cut(0);
  ASSERT_TRUE(world_.is_open(1));
  begin_push();
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  std::set<std::size_t> dialed;
  for (const Dial& dial : world_.dials()) {
    dialed.insert(dial.range);
  }
  EXPECT_THAT(dialed, ElementsAre(0, 1));
}

// ---- another process is this trainer ----

constexpr std::uint64_t kOther = 99;

net::Refusal refused_for_another() {
  return {.exit_code = kLostPeers, .sentence = "replaced", .replaced_by = kOther};
}

// The one before it, whose clock was ahead; or one that has not joined either.
TEST_F(RunSessionTest, OneThatHasJustBegunGoesOnAsANewerProcess) {
  world_.host(1).refuses = refused_for_another();
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
  EXPECT_THAT(world_.incarnations_above(), ElementsAre(kOther));
  EXPECT_FALSE(world_.is_open(0)) << "that ps knows the old one";
  world_.host(1).refuses.reset();
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(world_.is_open(0));
  EXPECT_THAT(world_.incarnations_above(), ElementsAre(kOther));
}

TEST_F(RunSessionTest, OneThatIsRefusedAgainAndAgainGivesUpInTheTimeToStart) {
  world_.host(1).refuses = refused_for_another();
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(300) - milliseconds(1)), Outcome::kUnderWay);
  world_.go_on_for(milliseconds(1));
  expect_failure(kLostPeers, "in vain for ps 1 (ps1:1): refused by ps 1 (ps1:1): replaced");
}

// It has heard of another one since, so that one is newer.
TEST_F(RunSessionTest, OneThatThisPsHadWelcomedHasBeenReplaced) {
  world_.host(1).is_up = false;
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
  world_.host(0).refuses = refused_for_another();
  world_.kill(0);
  world_.host(0).is_up = true;
  world_.host(1).is_up = true;
  session().begin_connect(world_.now());
  world_.go_on_for(seconds(3));
  expect_failure(kLostPeers, "replaced");
  EXPECT_TRUE(world_.incarnations_above().empty());
}

TEST_F(RunSessionTest, OneThatHasJoinedHasBeenReplaced) {
  join();
  world_.host(1).refuses = refused_for_another();
  world_.kill(1);
  world_.host(1).is_up = true;
  begin_push();
  world_.go_on_for(seconds(3));
  expect_failure(kLostPeers, "replaced");
  EXPECT_TRUE(world_.incarnations_above().empty());
}

TEST_F(RunSessionTest, WhoComesTooLateIsToldThatTheRunIsOver) {
  world_.host(0).is_up = false;
  world_.host(1).welcome.state = net::ShardState::kFinished;
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(1)), Outcome::kRunOver);
}

// A host that had just begun when it was told so: nobody had told it of another host.
TEST_F(RunSessionTest, TheEndOfARunWithReplicasIsHeardFromAnyHost) {
  for (const std::size_t range : {0U, 1U}) {
    world_.host(range).is_up = false;
    world_.host(range, 1).is_up = false;
  }
  world_.host(1).is_up = true;
  world_.host(1).welcome.state = net::ShardState::kFinished;
  session().expect_replicas();
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kRunOver);
}

TEST_F(RunSessionTest, AnAnswerToADialThatWasGivenUpLeavesNoLink) {
  session().begin_connect(world_.now());
  session().dialed(0, 99, net::Welcome{}, world_.now());
  const auto& effects = session().out().effects();
  EXPECT_TRUE(std::holds_alternative<CloseLink>(effects.back()));
}

// ----------------------------------------------------------------------------- the configuration

TEST_F(RunSessionTest, TheConfigurationIsAskedForAgainWherePs0IsLost) {
  world_.host(0).hold(0, 1);
  session().begin_connect(world_.now());
  world_.go_on();
  world_.host(0).is_mute = true;
  session().begin_get_config(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
  world_.host(0).is_mute = false;
  world_.cut(0);
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_TRUE(session().has_text());
}

TEST_F(RunSessionTest, WhoAsksForTheConfigurationOfARunThatIsOverIsTold) {
  session().begin_connect(world_.now());
  world_.go_on();
  world_.host(0).is_mute = true;
  session().begin_get_config(world_.now());
  world_.go_on();
  world_.host(0).welcome.state = net::ShardState::kFinished;
  world_.cut(0);
  EXPECT_EQ(world_.go_on(), Outcome::kRunOver);
}

// ------------------------------------------------------------------------------------- joining

TEST_F(RunSessionTest, TheChiefSetsAllPsToOneStateInAGenerationAboveAll) {
  world_.host(1).hold(9, 4);
  session().lead();
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  session().begin_pull(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsState);
  EXPECT_THAT(world_.heard_by(0), ElementsAre(FrameKind::kPublish));
  world_.heard();
  session().provided(7, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  EXPECT_EQ(session().reply().step, 7U);
  EXPECT_EQ(session().reply().generation, 5U);
  const auto heard = world_.heard();
  EXPECT_EQ(heard[0].range, 1U) << "when ps 0 is ready, all are";
  EXPECT_EQ(heard[0].header.kind, FrameKind::kRestore);
  EXPECT_EQ(heard[0].header.generation, 5U);
  EXPECT_EQ(heard[1].range, 0U);
  EXPECT_EQ(heard[1].header.generation, 5U);
}

TEST_F(RunSessionTest, ARestoreThatBreaksOffIsMadeAgainInANewGeneration) {
  session().lead();
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  session().begin_pull(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsState);
  world_.host(0).is_mute = true;
  session().provided(0, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  world_.host(0).restart(200);
  world_.host(0).is_mute = false;
  world_.dials();
  world_.cut(0);
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kNeedsState);
  EXPECT_EQ(world_.dials().size(), 2U) << "each welcome tells the news";
  session().provided(0, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().reply().generation, 2U);
}

TEST_F(RunSessionTest, TheChiefDoesNotPullFromAPsThatWaitsForItAlone) {
  session().lead();
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  session().begin_pull(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsState);
  world_.host(0).waits = true;
  world_.host(0).dies_of = FrameKind::kPull;
  session().provided(0, world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kNeedsState);
  session().provided(0, world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_EQ(session().reply().generation, 2U);
}

TEST_F(RunSessionTest, AGenerationIsNamedOnceEveryPsHoldsIt) {
  session().lead();
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  session().begin_pull(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsState);
  world_.host(0).is_mute = true;
  session().provided(0, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  EXPECT_EQ(world_.named(), 0U);
  world_.host(0).is_mute = false;
  world_.say(0, {.kind = FrameKind::kAck, .request_id = world_.last_id(0)});
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(world_.named(), 1U) << "before the first step: there may be none";
}

TEST_F(RunSessionTest, AWorkerWaitsUntilAllHoldOneState) {
  world_.host(0).hold(0, 1);
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  session().begin_pull(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(100)), Outcome::kUnderWay);
  world_.host(1).hold(0, 1);
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
}

TEST_F(RunSessionTest, OfTwoStepsTheEarlierIsPulled) {
  world_.host(0).hold(8, 1);
  world_.host(1).hold(7, 1);
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  world_.heard();
  session().begin_pull(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().reply().step, 7U);
  EXPECT_TRUE(session().reply().same_step);
}

TEST_F(RunSessionTest, WhatToCountFromIsTheMostThatAnyPsTells) {
  world_.host(0).counts_from = 7;
  world_.host(1).counts_from = 8;
  join();
  EXPECT_EQ(session().reply().counts_from, 8U);
  world_.host(0).counts_from = 20;
  session().begin_push_pull(9, false, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().reply().counts_from, 20U);
}

TEST_F(RunSessionTest, NobodyWaitsForAStateOnceTheRunIsOver) {
  world_.host(0).welcome.state = net::ShardState::kFinished;
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  session().begin_pull(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kRunOver);
}

TEST_F(RunSessionTest, AChiefThatComesAfterTheEndSetsNobodyToAnything) {
  world_.host(0).hold(9, 1);
  world_.host(1).hold(9, 1);
  world_.host(1).welcome.state = net::ShardState::kFinished;
  session().lead();
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  session().begin_pull(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kRunOver);
  EXPECT_TRUE(world_.heard().empty());
}

TEST_F(RunSessionTest, WhoHasLostItsStateDoesNotWaitForPsThatHaveLeft) {
  join();
  world_.host(0).is_mute = true;
  begin_push();
  world_.go_on();
  world_.host(0).welcome.state = net::ShardState::kFinished;
  world_.kill(1);
  world_.say(0, {.kind = FrameKind::kFenced, .request_id = world_.last_id(0)});
  EXPECT_EQ(world_.go_on_for(seconds(1)), Outcome::kRunOver);
}

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
  world_.host(1).hold(5, 3);  // as it has not applied it
  world_.host(1).is_mute = false;
  world_.cut(1);
  ASSERT_EQ(world_.go_on_for(seconds(1)), Outcome::kDone);
  const net::FrameHeader second = world_.heard().back().header;
  EXPECT_EQ(second.sequence, first.sequence);
  EXPECT_EQ(second.step, first.step);
  EXPECT_GT(second.request_id, first.request_id);
  EXPECT_THAT(world_.log(), HasSubstr("ps 1 (ps1:1) is back after "));
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

TEST_F(RunSessionTest, SilenceIsCountedFromWhenTheRequestHasLeft) {
  join();
  world_.host(0).is_mute = true;
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  session().sent(0, world_.now() + seconds(5));
  session().sent(1, world_.now() + seconds(5));
  EXPECT_EQ(session().deadline(), world_.now() + seconds(15));
}

TEST_F(RunSessionTest, AFreezeIsNobodysSilence) {
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

TEST_F(RunSessionTest, AFreezeIsNobodysAbsence) {
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
  EXPECT_THAT(world_.heard_by(0), ElementsAre());
  EXPECT_THAT(world_.log(), HasSubstr("ps 0 (ps0:1) is back after "));
  world_.say(1, {.kind = FrameKind::kParameters,
                 .request_id = world_.last_id(1),
                 .step = 6,
                 .generation = 3});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().reply().joined);
  EXPECT_EQ(session().range(0).acknowledged(), 1U);
}

TEST_F(RunSessionTest, NobodyWaitsForWhoHasAnsweredAlready) {
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

// What the others wait for may come only once another process has taken its place.
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
  world_.host(0).is_up = false;  // nobody answers there
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
  EXPECT_THAT(world_.heard_by(0), ElementsAre(FrameKind::kHeartbeat, FrameKind::kHeartbeat))
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
  EXPECT_THAT(world_.heard_by(0), ElementsAre(FrameKind::kPull));
  EXPECT_EQ(session().reply().generation, 4U);
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
  world_.host(0, 1).welcome.standing = net::Standing::kPrimary;
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
  std::erase_if(heard, [](const HeardRequest& each) { return each.range == 1; });
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].header.kind, FrameKind::kPushPull);
  EXPECT_EQ(heard[0].replica, 1);
  EXPECT_FALSE(session().reply().joined);
}

TEST_F(RunSessionTest, WhoHasAnsweredIsReachedAgainAndNotAsked) {
  join_with_replicas();
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  world_.heard();
  world_.host(0, 1).welcome.standing = net::Standing::kPrimary;
  world_.kill(0);
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kUnderWay);
  EXPECT_THAT(world_.heard_by(0), testing::Each(FrameKind::kHeartbeat));
  EXPECT_TRUE(session().reads(0));
}

TEST_F(RunSessionTest, ABackupIsAskedAgainUntilItIsMadeThePrimary) {
  join_with_replicas();
  world_.host(0).is_mute = true;
  begin_push();
  world_.go_on();
  world_.kill(0);
  EXPECT_EQ(world_.go_on_for(seconds(2)), Outcome::kUnderWay);
  world_.host(0, 1).welcome.standing = net::Standing::kPrimary;
  EXPECT_EQ(world_.go_on_for(milliseconds(100)), Outcome::kDone)
      << "pauses are short where another host is there";
}

TEST_F(RunSessionTest, APsWithoutReplicasIsNotTakenForOneThatHasThem) {
  world_.host(0).hold(0, 1);
  session().expect_replicas();
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
  world_.say(0, {.kind = FrameKind::kWork, .sequence = 2});
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsWork);
  EXPECT_THAT(session().work(), ElementsAre(2));
  const std::uint64_t id = world_.last_id(1);
  world_.say(1, {.kind = FrameKind::kParameters, .request_id = id, .step = 6, .generation = 3});
  session().begin_await_step(1, false, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  world_.say(0, {.kind = FrameKind::kWork, .sequence = 3});
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsWork);
  const std::uint64_t awaited = world_.last_id(0);
  session().push(3);
  world_.go_on();
  session().begin_await_step(1, false, world_.now());
  world_.go_on();
  EXPECT_THAT(world_.heard_by(0), ElementsAre(FrameKind::kPush));
  EXPECT_THAT(world_.heard_by(1), ElementsAre()) << "has made the step";
  world_.say(0,
             {.kind = FrameKind::kParameters, .request_id = awaited, .step = 6, .generation = 3});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().reply().step, 6U);
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
  world_.say(0, {.kind = FrameKind::kWork, .sequence = 2});
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsWork);
  world_.host(0).is_mute = false;
  session().push(2);
  world_.cut(0);
  world_.go_on();
  session().begin_await_step(1, false, world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
}

// ---------------------------------------------------------------------------------------- the end

TEST_F(RunSessionTest, OneAnswerToAGoodbyeIsEnough) {
  join();
  world_.host(1).releases = false;
  session().begin_await_end(world_.now());
  EXPECT_EQ(world_.go_on_for(milliseconds(999)), Outcome::kUnderWay) << "the others follow";
  EXPECT_EQ(world_.go_on_for(milliseconds(1)), Outcome::kDone);
  EXPECT_TRUE(session().was_released());
  EXPECT_FALSE(world_.is_open(1)) << "an answer may be on its way";
}

TEST_F(RunSessionTest, WhoIsLostIsNotWaitedForOnceOneHasAnswered) {
  join();
  world_.host(0).releases = false;
  world_.host(1).releases = false;
  session().begin_await_end(world_.now());
  world_.go_on();
  world_.kill(1);
  world_.say(0, {.kind = FrameKind::kAck, .request_id = world_.last_id(0)});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_TRUE(session().was_released());
}

TEST_F(RunSessionTest, ASetBackEndsTheWaitForTheEnd) {
  join();
  world_.host(0).releases = false;
  world_.host(1).releases = false;
  session().begin_await_end(world_.now());
  world_.go_on();
  world_.say(1, {.kind = FrameKind::kFenced, .request_id = world_.last_id(1)});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().was_released());
}

TEST_F(RunSessionTest, TheFinalParametersAreThoseThatTheFirstPsHas) {
  join();
  session().begin_fetch_final(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().final_step(), 5U);
}

TEST_F(RunSessionTest, TheFinalParametersAreGoneWithAPs) {
  join();
  world_.kill(1);
  session().begin_fetch_final(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().final_step());
}

// A ps that was replaced while it was silent, and woke up, still answers.
TEST_F(RunSessionTest, TheFinalParametersAreNotOfTwoStates) {
  join();
  world_.host(1).hold(5, 9);
  session().begin_fetch_final(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().final_step());
}

TEST_F(RunSessionTest, WhoHoldsAnOlderStateIsConnectedToAnewBeforeItIsAskedAgain) {
  world_.host(0).hold(5, 3);
  world_.host(1).hold(5, 4);
  session().begin_connect(world_.now());
  world_.go_on();
  session().prepare({.size = kFloats});
  session().begin_pull(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
  EXPECT_FALSE(world_.is_open(0)) << "another process may be in its place";
  EXPECT_TRUE(world_.is_open(1));
  world_.host(0).hold(5, 4);
  EXPECT_EQ(world_.go_on_for(seconds(10)), Outcome::kDone);
}

TEST_F(RunSessionTest, TheFinalParametersAreWaitedForOneSecond) {
  join();
  world_.host(1).is_mute = true;
  session().begin_fetch_final(world_.now());
  EXPECT_EQ(world_.go_on_for(milliseconds(999)), Outcome::kUnderWay);
  EXPECT_EQ(world_.go_on_for(milliseconds(1)), Outcome::kDone);
  EXPECT_FALSE(session().final_step());
}

TEST_F(RunSessionTest, TheChiefWaitsForTheOthersAtEveryPs) {
  join();
  world_.host(1).releases = false;
  session().begin_await_others(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(5)), Outcome::kUnderWay);
  world_.say(1, {.kind = FrameKind::kAck, .request_id = world_.last_id(1)});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
}

TEST_F(RunSessionTest, TheChiefDoesNotConcludeAStateThatIsNotFinished) {
  world_.host(0).last_step = 5;
  world_.host(1).last_step = 5;
  join();
  session().lead();
  world_.host(0).releases = false;
  world_.host(1).releases = false;
  session().begin_await_others(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  const std::uint64_t id = world_.last_id(1);
  world_.host(0).hold(2, 4);  // another chief's doing
  world_.host(1).hold(2, 4);
  world_.heard();
  world_.say(1, {.kind = FrameKind::kFenced, .request_id = id});
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  EXPECT_EQ(session().reply().step, 2U);
  EXPECT_THAT(world_.heard_by(0), Not(testing::Contains(FrameKind::kGoodbye)));
}

TEST_F(RunSessionTest, APsThatIsLostAtTheEndIsSetToTheResultAgain) {
  world_.host(0).last_step = 5;
  world_.host(1).last_step = 5;
  join();
  session().lead();
  world_.host(1).releases = false;
  session().begin_await_others(world_.now());
  world_.go_on();
  world_.kill(1);
  world_.host(1).restart(200);
  world_.host(1).releases = true;
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kNeedsState);
  session().provided(5, world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_EQ(world_.heard().back().header.kind, FrameKind::kGoodbye);
  EXPECT_FALSE(session().reply().joined);
  EXPECT_EQ(world_.named(), 4U) << "no step follows";
}

TEST_F(RunSessionTest, AllAreToldOfTheEndBeforeTheFirstIsLetGo) {
  join();
  world_.host(1).is_mute = true;
  session().begin_shutdown(world_.now());
  world_.go_on();
  EXPECT_THAT(world_.heard_by(0), ElementsAre(FrameKind::kShutdown));
  world_.host(1).is_mute = false;
  world_.say(1, {.kind = FrameKind::kAck, .request_id = world_.last_id(1)});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_THAT(world_.heard_by(0), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
  EXPECT_THAT(world_.heard_by(1), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
}

TEST_F(RunSessionTest, WhoComesBackAtTheEndIsToldBoth) {
  join();
  world_.host(1).releases = false;
  session().begin_shutdown(world_.now());
  world_.go_on();
  world_.heard();
  world_.kill(1);
  EXPECT_EQ(world_.go_on_for(seconds(1)), Outcome::kUnderWay);
  world_.host(1).restart(200);
  world_.host(1).releases = true;
  EXPECT_EQ(world_.go_on_for(seconds(2)), Outcome::kDone);
  EXPECT_THAT(world_.heard_by(1), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
  EXPECT_THAT(world_.log(), Not(HasSubstr("did not confirm")));
}

TEST_F(RunSessionTest, WhoDoesNotComeBackAtTheEndIsNotWaitedFor) {
  join();
  world_.kill(1);
  const auto begin = world_.now();
  session().begin_shutdown(begin);
  EXPECT_EQ(world_.go_on_for(seconds(10)), Outcome::kDone);
  EXPECT_THAT(world_.log(), HasSubstr("ps 1 (ps1:1) did not confirm the end of the run"));
  EXPECT_GE(world_.now(), begin + seconds(3));
}

TEST_F(RunSessionTest, ASignalAtTheEndLeavesNobodyUntold) {
  join();
  world_.host(1).is_mute = true;
  session().begin_shutdown(world_.now());
  world_.go_on();
  world_.heard();
  session().tell_the_end();
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_THAT(world_.heard_by(0), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
  EXPECT_THAT(world_.heard_by(1), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
}

TEST_F(RunSessionTest, WhoHasFailedCanStillTellTheEnd) {
  join();
  world_.host(0).refuses = net::Refusal{.exit_code = kError, .sentence = "no"};
  world_.kill(0);
  world_.host(0).is_up = true;
  begin_push();
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kFailed);
  session().begin_shutdown(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(10)), Outcome::kDone);
  EXPECT_THAT(world_.log(), HasSubstr("refused by ps 0 (ps0:1): no"));
}

TEST_F(RunSessionTest, TheStatusOfAPsThatIsLostIsNothing) {
  join();
  world_.kill(0);
  session().begin_status(0, world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().has_text());
}

}  // namespace
}  // namespace disttf::roles
