// What a primary sends the other host of its range, and how it handles the answers.
// backup_receiver_test.cc tests how the other host handles the frames.
#include "roles/ps/core/backup_sender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "net/wire/log_messages.h"
#include "tests/roles/replica_host.h"

namespace disttf::roles {
namespace {

using net::FrameKind;
using Heard = BackupSender::Heard;

constexpr ConnectionId kOtherHost = 5;

class BackupSenderTest : public testing::Test {
 protected:
  BackupSenderTest() {
    RunConfig config = small_run();
    config.ps_replicas = 2;
    state_.begin_run(config, to_json(config));
    for (const std::span<float> place : state_.begin_restore(/*parameters_only=*/true)) {
      std::ranges::fill(place, 0.0F);
    }
    state_.finish_restore(0, 7);
    sender_.begin(/*paired=*/false);
  }
  // Returns the frames that were sent since the last call. Also handles the connections that were
  // closed in between.
  std::vector<FrameKind> sent() {
    std::vector<FrameKind> kinds;
    out_.drain([&](const auto& effect) { note(effect, kinds); });
    return kinds;
  }
  // The other host acknowledges everything sent so far.
  Heard acknowledge() { return sender_.heard(net::Ack{sender_.head()}.to_header()); }
  void complete() {
    sender_.fill(kOtherHost, {});
    ASSERT_EQ(acknowledge(), Heard::kAck);
    ASSERT_EQ(acknowledge(), Heard::kCompleted);
    sent();
  }
  void step(std::uint64_t number) {
    push(*state_.shard(), 0, number, 1.0F);
    push(*state_.shard(), 1, number, 1.0F);
  }

  Task task_ = task_of_ps(0, 2);
  RangeState state_{task_, 0, 1, {}, [this](const ShardUpdate& each) { sender_.forward(each); }};
  Outbox out_;
  BackupSender sender_{state_, out_};
  bool is_closed_ = false;

 private:
  static void note(const SendFrame& effect, std::vector<FrameKind>& kinds) {
    EXPECT_EQ(effect.to, kOtherHost);
    kinds.push_back(effect.header.kind);
  }
  void note(const CloseConnection&, std::vector<FrameKind>&) { is_closed_ = true; }
  void note(const FinishConnection&, std::vector<FrameKind>&) { is_closed_ = true; }
  static void note(const auto&, std::vector<FrameKind>&) {
    ADD_FAILURE() << "no test expects this effect";
  }
};

TEST_F(BackupSenderTest, FillsTheOtherHostAndSaysWhenItHasEverything) {
  sender_.fill(kOtherHost, {});
  EXPECT_EQ(sent(), (std::vector{FrameKind::kPublish, FrameKind::kFill}));
  EXPECT_EQ(acknowledge(), Heard::kAck);
  EXPECT_EQ(sent(), std::vector{FrameKind::kComplete});
  EXPECT_FALSE(sender_.is_complete());
  EXPECT_EQ(acknowledge(), Heard::kCompleted);
  EXPECT_TRUE(sender_.is_complete());
}

TEST_F(BackupSenderTest, SendsEachUpdateToTheConnectedBackup) {
  step(0);
  EXPECT_TRUE(sent().empty()) << "no backup is connected";
  complete();
  step(1);
  EXPECT_EQ(sent(), std::vector{FrameKind::kUpdate});
}

TEST_F(BackupSenderTest, AnAnswerIsSafeOnceTheOtherHostHasWhatItTells) {
  complete();
  step(0);
  EXPECT_FALSE(sender_.is_safe(sender_.head()));
  EXPECT_EQ(acknowledge(), Heard::kAck);
  EXPECT_TRUE(sender_.is_safe(sender_.head()));
}

TEST_F(BackupSenderTest, ThatTheRunHasEndedIsSafeOnceTheOtherHostKnows) {
  complete();
  state_.shard()->conclude();
  sender_.conclude();
  EXPECT_EQ(sent(), std::vector{FrameKind::kConclude});
  EXPECT_FALSE(sender_.is_safe(sender_.head()));
  EXPECT_EQ(acknowledge(), Heard::kAck);
  EXPECT_TRUE(sender_.is_safe(sender_.head()));
}

TEST_F(BackupSenderTest, ABackupThatIsLostMayStillBeChosenInstead) {
  complete();
  step(0);
  EXPECT_TRUE(sender_.lose());
  sent();
  EXPECT_TRUE(is_closed_);
  EXPECT_FALSE(sender_.is_complete());
  EXPECT_FALSE(sender_.is_safe(sender_.head()));
  sender_.go_alone();
  EXPECT_TRUE(sender_.is_safe(sender_.head()));
  EXPECT_FALSE(sender_.lose()) << "there is none any more";
}

TEST_F(BackupSenderTest, WhatIsNoAnswerIsNonsense) {
  complete();
  EXPECT_EQ(sender_.heard(net::Heartbeat{}.to_header()), Heard::kNothing);
  EXPECT_EQ(sender_.heard(net::Ack{sender_.head() + 1}.to_header()), Heard::kNonsense)
      << "of an entry that was never sent";
  EXPECT_EQ(sender_.heard(net::Shutdown{}.to_header()), Heard::kNonsense);
  net::FrameHeader with_body = net::Ack{sender_.head()}.to_header();
  with_body.body_size = 1;
  EXPECT_EQ(sender_.heard(with_body), Heard::kNonsense);
}

TEST_F(BackupSenderTest, TheEndIsTheLastThingThatItTells) {
  EXPECT_EQ(sender_.end(), 0) << "no backup is connected";
  complete();
  EXPECT_EQ(sender_.end(), kOtherHost);
  EXPECT_EQ(sent(), std::vector{FrameKind::kShutdown});
  EXPECT_TRUE(is_closed_);
  EXPECT_EQ(sender_.connection(), 0);
}

}  // namespace
}  // namespace disttf::roles
