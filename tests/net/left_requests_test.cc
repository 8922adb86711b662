// Requests that a trainer leaves in memory for a ps that is awake.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/memory/header_mailbox.h"
#include "net/wire/messages.h"
#include "tests/net/in_place_fixture.h"

namespace disttf::net {
namespace {

// An action just before a thread writes to a page, for the moment between two steps of a function
// that offers no callback. At most one at a time. The first write to the page calls `act` in a
// signal handler (SIGSEGV), so `act` may use only async-signal-safe operations; the write then
// continues. REQUIRES: only one thread writes to the page, and not by a system call.
class WriteTrap {
 public:
  // The page that contains `at`, in a writable mapping.
  WriteTrap(std::byte* at, std::function<void()> act) : page_(page_of(at)), act_(std::move(act)) {
    set_ = this;
    struct sigaction ours {};
    ours.sa_sigaction = &WriteTrap::spring;
    ours.sa_flags = SA_SIGINFO;
    EXPECT_EQ(::sigaction(SIGSEGV, &ours, &before_), 0);
    EXPECT_EQ(::mprotect(page_.data(), page_.size(), PROT_READ), 0);
  }
  ~WriteTrap() {
    EXPECT_TRUE(is_sprung_) << "no write to the page occurred";
    EXPECT_EQ(::mprotect(page_.data(), page_.size(), PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(::sigaction(SIGSEGV, &before_, nullptr), 0);
    set_ = nullptr;
  }
  WriteTrap(const WriteTrap&) = delete;
  WriteTrap& operator=(const WriteTrap&) = delete;

 private:
  static std::span<std::byte> page_of(std::byte* at) {
    const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return {at - reinterpret_cast<std::uintptr_t>(at) % size, size};
  }
  // The write is repeated after this returns. A fault of another kind then happens as without a
  // trap.
  static void spring(int /*signal*/, siginfo_t* info, void* /*context*/) {
    const auto* at = static_cast<const std::byte*>(info->si_addr);
    const std::span<std::byte> page = set_->page_;
    if (set_->is_sprung_ || at < page.data() || at >= page.data() + page.size()) {
      ::sigaction(SIGSEGV, &set_->before_, nullptr);
      return;
    }
    set_->is_sprung_ = true;
    set_->act_();
    ::mprotect(page.data(), page.size(), PROT_READ | PROT_WRITE);
  }

  static inline WriteTrap* set_ = nullptr;
  const std::span<std::byte> page_;
  const std::function<void()> act_;
  struct sigaction before_ {};
  volatile bool is_sprung_ = false;
};

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
