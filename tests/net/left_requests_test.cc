// Requests that a trainer leaves in memory for a ps that is awake.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/memory/header_mailbox.h"
#include "net/wire/messages.h"
#include "tests/net/in_place_fixture.h"
#include "tests/net/write_trap.h"

namespace disttf::net {
namespace {

class LeftRequestsTest : public InPlaceTest {};

TEST_F(LeftRequestsTest, APsThatIsAwakeFindsAPushInMemory) {
  connect_to_one_awake();
  for (int number = 1; number <= 3; ++number) {
    gradient_->gradient().front() = static_cast<std::byte>(number);
    push(gradient_->gradient());
    EXPECT_TRUE(poll());
    EXPECT_TRUE(happened_.wait_for("first byte " + std::to_string(number)));
    await_answer();
    expect_parameters(/*in_place=*/true);
    EXPECT_FALSE(poll()) << "a request is taken only once";
  }
  EXPECT_EQ(happened_.count("in place 10000 bytes, flags 0"), 3);
}

TEST_F(LeftRequestsTest, AParkedPsIsSentAPush) {
  connect();
  agree();
  push(gradient_->gradient());
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
  EXPECT_FALSE(poll());
}

// The ps parked after the trainer had seen it awake, and had checked memory before the trainer left
// the push.
TEST_F(LeftRequestsTest, AWakeUpLeadsToThePush) {
  connect_to_one_awake();
  push(gradient_->gradient());
  ASSERT_FALSE(channel_->send(Heartbeat{}.to_header(), {}, patience()));
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
  await_answer();
  expect_parameters(/*in_place=*/true);
}

// The ps parks after the trainer has seen it awake, just before the push's header is written: after
// the end of the gradient, on its last page.
TEST_F(LeftRequestsTest, APsThatHasParkedMeanwhileIsWoken) {
  connect_to_one_awake();
  const std::span<std::byte> gradient = gradient_->gradient();
  {
    const WriteTrap trap(&gradient.back(), [this] { terms_.memory->set_parked(true); });
    push(gradient);
  }
  ASSERT_TRUE(happened_.wait_for("sent 0 bytes")) << "no wake";
  ASSERT_TRUE(happened_.wait_for("in place 10000 bytes"));
  await_answer();
  expect_parameters(/*in_place=*/true);
}

// A trainer that waits for another ps sends a heartbeat and expects it to come back.
TEST_F(LeftRequestsTest, AHeartbeatReachesTheReader) {
  connect();
  agree();
  ASSERT_FALSE(channel_->send(Heartbeat{}.to_header(), {}, patience()));
  EXPECT_TRUE(happened_.wait_for("sent 0 bytes, flags 0"));
}

// Elastic: pushes without an answer, and a pull.
TEST_F(LeftRequestsTest, RequestsThatAreLeftBehindEachOtherAreReadInTheirOrder) {
  connect_to_one_awake();
  for (int round = 0; round < 3; ++round) {
    for (const std::uint64_t id : {std::uint64_t{2}, std::uint64_t{3}}) {
      ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = id},
                                  gradient_->gradient(), patience()));
    }
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPull, .request_id = 4}, {}, patience()));
    EXPECT_TRUE(poll());
    await_answer();
    EXPECT_EQ(happened_.count("in place 10000 bytes"), 2 * (round + 1))
        << "before the answer arrives";
    expect_parameters(/*in_place=*/true);
  }
  EXPECT_EQ(happened_.count("sent 0 bytes"), 3);
}

// Undone work of other trainers is assigned to a waiting one, which pushes before its pull is
// answered.
TEST_F(LeftRequestsTest, ThereIsRoomAgainWhenAPullIsAnsweredThoughAPushFollowedIt) {
  connect_to_one_awake();
  for (std::uint64_t round = 0; round < 20; ++round) {
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPull, .request_id = 4}, {}, patience()));
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = 5}, gradient_->gradient(),
                                patience()));
    EXPECT_TRUE(poll()) << "in memory, in round " << round;
    await_answer();
    expect_parameters(/*in_place=*/true);
  }
}

TEST_F(LeftRequestsTest, WhatASlotHasNoRoomForIsSent) {
  connect_to_one_awake();
  const auto push_alone = [this](std::uint64_t id) {
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = id}, gradient_->gradient(),
                                patience()));
  };
  for (std::uint64_t id = 10; id < 10 + kHeadersInMailbox + 1; ++id) {
    push_alone(id);
  }
  push(gradient_->gradient());  // after a frame: another one
  await_answer();               // no look was needed: the frames led to all requests
  EXPECT_EQ(happened_.count("in place 10000 bytes"), std::ptrdiff_t{kHeadersInMailbox} + 2);
  expect_parameters(/*in_place=*/true);
  push(gradient_->gradient());
  EXPECT_TRUE(poll()) << "all requests are answered";
}

TEST_F(LeftRequestsTest, APushInMemoryComesBeforeAFrameThatIsSentBehindIt) {
  connect_to_one_awake();
  push(gradient_->gradient());
  const std::vector<std::byte> body(100, std::byte{6});
  ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = 5}, body, patience()));
  EXPECT_TRUE(happened_.wait_for("sent 100 bytes"));
  EXPECT_EQ(happened_.count("in place 10000 bytes"), 1) << "read before the frame";
  EXPECT_TRUE(happened_.wait_for("first byte 6")) << "the body still belongs to that frame";
}

TEST_F(LeftRequestsTest, APushDoesNotOvertakeAFrameThatMayNotHaveBeenRead) {
  connect_to_one_awake();
  const std::vector<std::byte> body(100, std::byte{6});
  ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = 3}, body, patience()));
  push(gradient_->gradient());
  EXPECT_FALSE(poll()) << "it is sent after that";
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
  await_answer();
  expect_parameters(/*in_place=*/true);
  push(gradient_->gradient());
  EXPECT_TRUE(poll()) << "all requests are answered";
}

TEST_F(LeftRequestsTest, APushIsFoundThatWasLeftForMemoryThatThePsHasNoMore) {
  connect_to_one_awake();
  push(gradient_->gradient());
  server_->ask([this](Listener&) {
    terms_.memory = ParameterMemory::create(kParameters, 2);
    return 0;
  });
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
  expect_parameters(/*in_place=*/false);
  push(gradient_->gradient());
  expect_parameters(/*in_place=*/false);
  EXPECT_EQ(happened_.count("in place 10000 bytes"), 2)
      << "the other one is sent over the socket: no look finds it";
}

// The ps may still have the earlier channel.
TEST_F(LeftRequestsTest, APushIsFoundOverTheNewestChannelAlone) {
  connect();
  agree();
  const std::unique_ptr<Channel> before = std::move(channel_);
  open();
  agree();
  awake();
  push(gradient_->gradient());
  EXPECT_TRUE(poll());
  EXPECT_FALSE(poll());
  await_answer();
  expect_parameters(/*in_place=*/true);
  ASSERT_FALSE(before->send({.kind = FrameKind::kStatus, .request_id = 4}, {}, patience()));
  EXPECT_TRUE(happened_.wait_for("sent 0 bytes")) << "over the earlier channel";
  EXPECT_EQ(happened_.count("in place 10000 bytes"), 1);
}

TEST_F(LeftRequestsTest, AChannelWithoutANumberSendsItsRequests) {
  connect();
  OpenedChannel opened =
      open_channel(server_->address(), hello_of_worker_1(), interrupt_, patience());
  ASSERT_TRUE(opened.channel) << opened.error.message();
  channel_ = gradient_->carry(std::move(opened.channel), std::nullopt);
  agree();
  awake();
  push(gradient_->gradient());
  EXPECT_FALSE(poll());
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
}

}  // namespace
}  // namespace disttf::net
