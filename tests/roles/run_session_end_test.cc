// A trainer's core: how it ends its part of a run.
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

TEST_F(RunSessionTest, ARollbackEndsTheWaitForTheEnd) {
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

// A ps that was replaced while it was suspended has resumed and still answers.
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
  begin_join();
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

TEST_F(RunSessionTest, AFreezeDoesNotCountTowardTheTimeForTheFinalParameters) {
  join();
  world_.host(1).is_mute = true;
  session().begin_fetch_final(world_.now());
  ASSERT_EQ(world_.go_on_for(milliseconds(500)), Outcome::kUnderWay);
  session().forgive(seconds(20));
  EXPECT_EQ(world_.go_on_for(seconds(5)), Outcome::kUnderWay);
  world_.host(1).is_mute = false;
  world_.say(1, {.kind = FrameKind::kParameters,
                 .request_id = world_.last_id(1),
                 .step = 5,
                 .generation = 3});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_EQ(session().final_step(), 5U);
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
  world_.host(0).hold(2, 4);  // another chief has restored it
  world_.host(1).hold(2, 4);
  world_.heard();
  world_.say(1, {.kind = FrameKind::kFenced, .request_id = id});
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  EXPECT_EQ(session().reply().step, 2U);
  EXPECT_THAT(world_.received_by(0), Not(testing::Contains(FrameKind::kGoodbye)));
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

// ------------------------------------------------------------------------------------ early
// stopping

// A chief that was lost then has notified one of them: this trainer has to decide by itself.
TEST_F(RunSessionTest, ARunHasEndedOnceAllPsSaySo) {
  world_.host(0).last_step = 5;
  join();
  EXPECT_FALSE(session().reply().finished);
  begin_push();
  world_.host(1).last_step = 5;
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_TRUE(session().reply().finished);
}

TEST_F(RunSessionTest, WhereNotEveryGradientCountsItHasOncePs0SaysSo) {
  world_.host(0).last_step = 5;
  join({.size = kFloats, .fully_synchronous = false});
  EXPECT_TRUE(session().reply().finished);
}

class RunThatEndsEarly : public RunSessionTest {
 protected:
  void SetUp() override {
    join();
    session().lead();
    for (const std::size_t range : {0U, 1U}) {
      world_.host(range).last_step = 5;  // the ps follows its chief
    }
    session().begin_peek(world_.now());
    ASSERT_EQ(world_.go_on(), Outcome::kDone);
    ASSERT_TRUE(session().reply().finished);
    for (const ReceivedRequest& each : world_.heard()) {
      ASSERT_EQ(each.header.kind, FrameKind::kPull);
      ASSERT_EQ(each.header.flags, net::kFlagFinished);
    }
  }
};

TEST_F(RunThatEndsEarly, APsThatIsLostThenIsSetToItAsToTheEnd) {
  world_.host(1).releases = false;
  session().begin_await_others(world_.now());
  world_.go_on();
  world_.kill(1);
  world_.host(1).restart(200);
  world_.host(1).releases = true;
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kNeedsState);
  world_.heard();
  session().provided(5, world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  std::size_t restores = 0;
  for (const ReceivedRequest& each : world_.heard()) {
    if (each.header.kind == FrameKind::kRestore) {
      ++restores;
      EXPECT_EQ(each.header.flags, net::kFlagFinished);
    }
  }
  EXPECT_EQ(restores, 2U);
}

// A copy that replaces a notified host may not have been notified.
TEST_F(RunThatEndsEarly, AHostThatDoesNotKnowIsTold) {
  world_.host(1).releases = false;
  session().begin_await_others(world_.now());
  world_.go_on();
  world_.heard();
  world_.say(1, {.kind = FrameKind::kFenced, .request_id = world_.last_id(1)});
  world_.host(1).releases = true;
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  const auto heard = world_.heard();
  EXPECT_TRUE(std::ranges::any_of(heard, [](const ReceivedRequest& each) {
    return each.range == 1 && each.header.kind == FrameKind::kPull &&
           each.header.flags == net::kFlagFinished;
  }));
  EXPECT_FALSE(session().reply().joined);
}

TEST_F(RunThatEndsEarly, IsForgottenWithItsState) {
  world_.host(1).releases = false;
  session().begin_await_others(world_.now());
  world_.go_on();
  const std::uint64_t id = world_.last_id(1);
  for (const std::size_t range : {0U, 1U}) {
    world_.host(range).hold(2, 4);  // another chief has restored it
  }
  world_.heard();
  world_.say(1, {.kind = FrameKind::kFenced, .request_id = id});
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  for (const ReceivedRequest& each : world_.heard()) {
    EXPECT_EQ(each.header.flags, 0) << "there are steps to be made from that";
  }
}

// ---------------------------------------------------------------------------------------- the end

TEST_F(RunSessionTest, AllAreToldOfTheEndBeforeTheFirstIsLetGo) {
  join();
  world_.host(1).is_mute = true;
  session().begin_shutdown(world_.now());
  world_.go_on();
  EXPECT_THAT(world_.received_by(0), ElementsAre(FrameKind::kShutdown));
  world_.host(1).is_mute = false;
  world_.say(1, {.kind = FrameKind::kAck, .request_id = world_.last_id(1)});
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_THAT(world_.received_by(0), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
  EXPECT_THAT(world_.received_by(1), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
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
  EXPECT_THAT(world_.received_by(1), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
  EXPECT_THAT(world_.log(), Not(HasSubstr("did not confirm")));
}

// A host with another state then holds no part of the result.
TEST_F(RunSessionTest, TheEndIsOfTheGenerationThatTheChiefHas) {
  join();
  world_.host(1).releases = false;
  session().begin_shutdown(world_.now());
  world_.go_on();
  world_.kill(1);
  world_.host(1).restart(200);
  world_.host(1).hold(2, 4);  // another chief has restored it
  world_.host(1).releases = true;
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  for (const ReceivedRequest& each : world_.heard()) {
    EXPECT_EQ(each.header.generation, each.header.kind == FrameKind::kShutdown ? 3U : 0U)
        << "ps " << each.range;
  }
}

TEST_F(RunSessionTest, AChiefThatComesLateTellsTheGenerationThatAPsWasTold) {
  world_.host(0).hold(2, 9);
  world_.host(1).hold(5, 3);
  world_.host(1).welcome.state = net::ShardState::kFinished;
  session().begin_connect(world_.now());
  ASSERT_EQ(world_.go_on(), Outcome::kRunOver);
  session().begin_shutdown(world_.now());
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_EQ(world_.heard().front().header.generation, 3U);
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

TEST_F(RunSessionTest, AFreezeAtTheEndDoesNotCountTowardTheTimeToNotify) {
  join();
  world_.kill(1);
  session().begin_shutdown(world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(1)), Outcome::kUnderWay);
  session().forgive(seconds(20));
  ASSERT_EQ(world_.go_on_for(seconds(5)), Outcome::kUnderWay);
  world_.host(1).restart(200);
  EXPECT_EQ(world_.go_on_for(seconds(12)), Outcome::kDone);
  EXPECT_THAT(world_.received_by(1), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
  EXPECT_THAT(world_.log(), Not(HasSubstr("did not confirm")));
}

TEST_F(RunSessionTest, ASignalAtTheEndLeavesNoPsUnnotified) {
  join();
  world_.host(1).is_mute = true;
  session().begin_shutdown(world_.now());
  world_.go_on();
  world_.heard();
  session().announce_end();
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_THAT(world_.received_by(0), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
  EXPECT_THAT(world_.received_by(1), ElementsAre(FrameKind::kShutdown, FrameKind::kGoodbye));
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

// A trainer's core, and answers of another generation than its own.

TEST_F(RunSessionTest, WhatWasAnsweredOfAnOlderGenerationDoesNotMatter) {
  join();
  begin_push();
  ASSERT_EQ(world_.go_on(), Outcome::kDone);
  world_.host(0).hold(2, 4);
  world_.host(1).hold(2, 4);
  session().begin_push_pull(2, false, world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_EQ(session().range(0).last_answer(), (net::LastAnswer{.generation = 4, .step = 2}));
}

TEST_F(RunSessionTest, AnAnswerOfAnotherGenerationIsNoStep) {
  join();
  world_.host(1).misnames = 4;
  begin_push();
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  EXPECT_EQ(session().generation(), 3U);
  EXPECT_EQ(session().range(1).generation(), 3U);
  EXPECT_EQ(session().range(1).acknowledged(), 0U);
}

TEST_F(RunSessionTest, APeekAtTwoGenerationsIsOfNone) {
  join();
  world_.host(1).misnames = 4;
  session().begin_peek(world_.now());
  ASSERT_EQ(world_.go_on_for(seconds(3)), Outcome::kDone);
  EXPECT_TRUE(session().reply().joined);
  EXPECT_EQ(session().range(1).generation(), 3U);
}

}  // namespace
}  // namespace disttf::roles
