// A trainer's core: how it connects and joins a run, for the first time or again.
#include <gmock/gmock.h>

#include <chrono>
#include <set>

#include "tests/roles/run_session_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameKind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ------------------------------------------------------------------------------------- connecting

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
  expect_failure(kLostPeers, "waited 300 s for ps 1 (ps1:1): Connection refused");
}

TEST_F(RunSessionTest, SaysWhomItWaitsForEverMoreSeldom) {
  world_.host(1).is_up = false;
  session().begin_connect(world_.now());
  const auto notes = [this] {
    const std::string note = "waits for ps 1 (ps1:1): Connection refused\n";
    int count = 0;
    for (std::size_t at = world_.log().find(note); at != std::string::npos;
         at = world_.log().find(note, at + 1)) {
      ++count;
    }
    return count;
  };
  world_.go_on_for(milliseconds(4900));
  EXPECT_EQ(notes(), 0);
  world_.go_on_for(seconds(4));
  EXPECT_EQ(notes(), 1);
  world_.go_on_for(seconds(291));
  EXPECT_EQ(notes(), 6);  // after 5 s, 10, 20, 40, 80, 160
}

TEST_F(RunSessionTest, AFreezeWhileConnectingIsForgiven) {
  world_.host(1).is_up = false;
  session().begin_connect(world_.now());
  world_.go_on_for(seconds(100));
  session().forgive(seconds(50));
  EXPECT_EQ(world_.go_on_for(seconds(249)), Outcome::kUnderWay);
  EXPECT_EQ(world_.go_on_for(seconds(1)), Outcome::kFailed);
}

TEST_F(RunSessionTest, AnUnansweredDialEndsInTime) {
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

// The open link may lead to a process that was suspended and that another process has replaced
// since.
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

// ---- another process of the same trainer ----

constexpr std::uint64_t kOther = 99;

net::Refusal refused_for_another() {
  return {.exit_code = kLostPeers, .sentence = "replaced", .replaced_by = kOther};
}

// The other process is its predecessor, whose clock was ahead, or one that has not joined either.
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

// The ps that refused its views was lost since, and the process that replaces it refuses no chief.
TEST_F(RunSessionTest, OneWhoseViewsAreRefusedGoesOnAsANewerProcess) {
  world_.host(1).is_up = false;
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
  session().record_incarnation(6, world_.now());  // of a process that it has overtaken since
  EXPECT_TRUE(world_.is_open(0));
  session().record_incarnation(kOther, world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kUnderWay);
  EXPECT_THAT(world_.incarnations_above(), ElementsAre(kOther));
  EXPECT_FALSE(world_.is_open(0)) << "that ps knows the old one";
  world_.host(1).is_up = true;
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  session().record_incarnation(2 * kOther, world_.now());
  EXPECT_THAT(world_.incarnations_above(), ElementsAre(kOther)) << "it has begun";
}

TEST_F(RunSessionTest, OneThatIsRefusedAgainAndAgainGivesUpInTheTimeToStart) {
  world_.host(1).refuses = refused_for_another();
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(300) - milliseconds(1)), Outcome::kUnderWay);
  world_.go_on_for(milliseconds(1));
  expect_failure(kLostPeers, "waited 300 s for ps 1 (ps1:1): refused by ps 1 (ps1:1): replaced");
}

// The ps has recorded another process since, so that one is newer.
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

// A host that had just begun when it was notified of the end. It has received no view that names
// another host.
TEST_F(RunSessionTest, TheEndOfARunWithReplicasIsHeardFromAnyHost) {
  for (const std::size_t range : {0U, 1U}) {
    world_.host(range).is_up = false;
    world_.host(range, 1).is_up = false;
  }
  world_.host(1).is_up = true;
  world_.host(1).welcome.state = net::ShardState::kFinished;
  session().expect_replicas(true);
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
  begin_join();
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsState);
  EXPECT_THAT(world_.received_by(0), ElementsAre(FrameKind::kPublish));
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

// An earlier chief was lost after it had notified only ps 0 that the run ends here.
TEST_F(RunSessionTest, AnEndThatSomePsHaveHeardOfAChiefTellsTheOthers) {
  world_.host(0).last_step = 5;
  session().lead();
  join({.size = kFloats, .fully_synchronous = true});
  EXPECT_TRUE(session().reply().finished);
  EXPECT_EQ(world_.host(1).last_step, 5U);
}

TEST_F(RunSessionTest, AnEndThatSomePsHaveHeardOfIsNoWorkersToTell) {
  world_.host(0).last_step = 5;
  join({.size = kFloats, .fully_synchronous = true});
  EXPECT_FALSE(session().reply().finished);
  EXPECT_NE(world_.host(1).last_step, 5U);
}

// If the chief is lost between the two, the ps have recorded the best evaluation, whatever their
// state.
TEST_F(RunSessionTest, TheBestEvaluationIsToldBeforeAState) {
  session().record_best({.step = 4, .loss = 0.5});
  session().lead();
  begin_join();
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsState);
  session().record_best({.step = 6, .loss = 0.25});  // from the checkpoint that it has read
  world_.heard();
  session().provided(7, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  for (const std::size_t range : {0U, 1U}) {
    EXPECT_THAT(world_.received_by(range),
                ElementsAre(FrameKind::kBest, FrameKind::kRestore, FrameKind::kPull));
    EXPECT_EQ(world_.host(range).best, (BestEvaluation{.step = 6, .loss = 0.25}));
  }
}

TEST_F(RunSessionTest, TheBestEvaluationIsHeardFromEveryPs) {
  world_.host(1).best = {.step = 4, .loss = 0.5};
  session().record_best({});
  session().lead();
  join();
  EXPECT_EQ(session().best(), (BestEvaluation{.step = 4, .loss = 0.5}));
  session().record_best({.step = 8, .loss = 0.25});
  session().begin_send_best(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(world_.host(0).best.step, 8U);
  EXPECT_EQ(world_.host(1).best.step, 8U);
}

TEST_F(RunSessionTest, WhereTheStateIsLostMeanwhileTheNextStepFindsOut) {
  lose_while_sending_best();
  world_.host(1).is_mute = false;
  world_.cut(1);
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  begin_push();
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kNeedsState);
  session().provided(5, world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_EQ(world_.host(1).best.step, 4U);
}

// A new process has replaced that ps, and another chief has restored its own state to it.
TEST_F(RunSessionTest, AStateThatIsMetMeanwhileIsNotTakenForTheOneThatWasJoined) {
  lose_while_sending_best();
  world_.host(1).hold(0, 4);
  world_.host(1).is_mute = false;
  world_.cut(1);
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  world_.heard();
  begin_push();
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kNeedsState);
  EXPECT_THAT(world_.received_by(1), ElementsAre(FrameKind::kPublish));
}

TEST_F(RunSessionTest, TheGenerationThatAChiefMakesBeginsWithTheIncarnationItHasTaken) {
  constexpr std::uint64_t kTaken = 0x0123456789ABCDEF;
  session().lead();
  session().took_incarnation(kTaken);
  begin_join();
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsState);
  session().provided(7, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().reply().generation, net::generation_after(0, kTaken));
}

TEST_F(RunSessionTest, ARestoreThatBreaksOffIsMadeAgainInANewGeneration) {
  session().lead();
  begin_join();
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
  begin_join();
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
  begin_join();
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
  begin_join();
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

// An outdated copy became the primary, and no process is left that could have reported it.
TEST_F(RunSessionTest, TheChiefSetsPsThatAreStepsApartToOneState) {
  world_.host(0).hold(8, 1);
  world_.host(1).hold(6, 1);
  session().lead();
  begin_join();
  ASSERT_EQ(world_.go_on(), Outcome::kNeedsState);
  session().provided(4, world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().reply().step, 4U);
  EXPECT_EQ(session().reply().generation, 2U);
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

TEST_F(RunSessionTest, NoTrainerWaitsForAStateOnceTheRunIsOver) {
  world_.host(0).welcome.state = net::ShardState::kFinished;
  begin_join();
  EXPECT_EQ(world_.go_on(), Outcome::kRunOver);
}

TEST_F(RunSessionTest, AChiefThatComesAfterTheEndSetsNoStateAnywhere) {
  world_.host(0).hold(9, 1);
  world_.host(1).hold(9, 1);
  world_.host(1).welcome.state = net::ShardState::kFinished;
  session().lead();
  begin_join();
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

}  // namespace
}  // namespace disttf::roles
