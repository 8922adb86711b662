// Which steps a primary may answer, given what its backup has.
#include "roles/ps/core/replication_log.h"

#include <gtest/gtest.h>

namespace disttf::roles {
namespace {

using Acknowledged = ReplicationLog::Progress;

class ReplicationLogTest : public testing::Test {
 protected:
  // The other host has acknowledged everything and is complete.
  void pair() {
    const auto state = log_.begin_fill();
    ASSERT_EQ(log_.acknowledged(state), Acknowledged::kFilled);
    const auto end = log_.complete();
    ASSERT_EQ(log_.acknowledged(end), Acknowledged::kComplete);
  }
  [[nodiscard]] bool is_step_safe() const { return log_.is_safe(log_.head(), true); }

  ReplicationLog log_;
};

TEST_F(ReplicationLogTest, ALonePrimaryDoesNotWait) {
  log_.append();
  log_.append();
  log_.append();
  EXPECT_TRUE(is_step_safe());
}

TEST_F(ReplicationLogTest, AnswersWaitForAHostThatIsFilledTooSlowly) {
  const auto state = log_.begin_fill();
  log_.append();
  EXPECT_TRUE(is_step_safe()) << "two entries are on their way";
  const auto update = log_.append();
  EXPECT_FALSE(is_step_safe());
  log_.acknowledged(state);
  EXPECT_TRUE(is_step_safe());
  EXPECT_LT(state, update);
}

TEST_F(ReplicationLogTest, NothingIsAnsweredThatACompleteBackupHasNot) {
  pair();
  EXPECT_TRUE(is_step_safe());
  const auto update = log_.append();
  EXPECT_FALSE(is_step_safe());
  log_.acknowledged(update);
  EXPECT_TRUE(is_step_safe());
}

// Its later acknowledgement changes nothing.
TEST_F(ReplicationLogTest, WhatWasHandedOffCountsAsAcknowledged) {
  pair();
  const auto first = log_.append();
  const auto second = log_.append();
  log_.handed_off(first);
  EXPECT_EQ(log_.lag(), 1U);
  EXPECT_FALSE(is_step_safe());
  log_.handed_off(second);
  EXPECT_TRUE(is_step_safe());
  EXPECT_EQ(log_.acknowledged(first), Acknowledged::kNone);
  EXPECT_EQ(log_.lag(), 0U);
}

// A backup counts from the moment at which it is notified that it is complete, and not from its
// acknowledgement.
TEST_F(ReplicationLogTest, ABackupCountsFromWhenItMayBeChosen) {
  log_.acknowledged(log_.begin_fill());
  log_.complete();
  EXPECT_TRUE(log_.needs_acks());
  EXPECT_FALSE(log_.is_complete());
  EXPECT_FALSE(is_step_safe());
}

TEST_F(ReplicationLogTest, LaterPushesOfOthersHoldBackNoAnswerThatOmitsThem) {
  pair();
  const auto own = log_.append();
  log_.append();
  log_.acknowledged(own);
  EXPECT_TRUE(log_.is_safe(own, false));
  EXPECT_FALSE(log_.is_safe(own, true));
}

TEST_F(ReplicationLogTest, WhoLosesItsBackupWaitsUntilItMayGoOnAlone) {
  pair();
  log_.append();
  log_.lose_backup();
  EXPECT_FALSE(log_.is_complete());
  EXPECT_FALSE(is_step_safe());
  log_.go_alone();
  EXPECT_TRUE(is_step_safe());
}

TEST_F(ReplicationLogTest, WhoIsChosenOutOfAPairAsksBeforeItAnswers) {
  log_.begin(/*paired=*/true);
  log_.append();
  EXPECT_FALSE(is_step_safe());
  log_.go_alone();
  EXPECT_TRUE(is_step_safe());
}

TEST_F(ReplicationLogTest, AnAcknowledgementOfTheHostBeforeIsNotTheNextOnes) {
  const auto state = log_.begin_fill();
  log_.lose_backup();
  log_.begin_fill();
  EXPECT_EQ(log_.acknowledged(state), Acknowledged::kNone);
}

}  // namespace
}  // namespace disttf::roles
