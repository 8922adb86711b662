// A trainer's core, and answers of another generation than its own.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/roles/run_session_fixture.h"

namespace disttf::roles {
namespace {

using std::chrono::seconds;

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
