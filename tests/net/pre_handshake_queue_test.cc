#include "net/tcp/pre_handshake_queue.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "net/tcp/sockets.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

// Returns a TLS handshake record whose header declares `says` bytes, with `follow` bytes after it.
std::string record(std::size_t says, std::size_t follow) {
  std::string bytes = {'\x16', '\x03', '\x01', static_cast<char>(says >> 8U),
                       static_cast<char>(says & 0xFFU)};
  return bytes + std::string(follow, 'x');
}

class PreHandshakeQueueTest : public testing::Test {
 protected:
  // Connects and returns the dialling end.
  asio::ip::tcp::socket dial() {
    asio::ip::tcp::socket ours(context_);
    ours.connect(acceptor_.local_endpoint());
    return ours;
  }
  Descriptor accept() {
    Descriptor theirs(
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    EXPECT_TRUE(theirs.is_open());
    return theirs;
  }
  static void say(asio::ip::tcp::socket& from, const std::string& bytes) {
    EXPECT_EQ(from.send(asio::buffer(bytes)), bytes.size());
  }
  static bool comes_alive(int fd) {
    pollfd waiting{fd, POLLIN, 0};
    return ::poll(&waiting, 1, 10'000) == 1;
  }
  std::vector<PreHandshakeQueue::Arrival> await_ready(PreHandshakeQueue& queue) {
    EXPECT_TRUE(comes_alive(queue.fd()));
    return queue.ready();
  }
  // Returns whether nothing is pending, so that waiting peers cause no work.
  static bool is_quiet(const PreHandshakeQueue& queue) {
    pollfd waiting{queue.fd(), POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 0;
  }
  static PreHandshakeQueue::Time later() { return std::chrono::steady_clock::now() + 1h; }

  asio::io_context context_;
  asio::ip::tcp::acceptor acceptor_ = listen_on(context_, 0, ListenScope::kLoopback);
};

TEST_F(PreHandshakeQueueTest, WhoSaysNothingWaits) {
  PreHandshakeQueue queue(false);
  auto ours = dial();
  EXPECT_FALSE(queue.add(accept(), later()));
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_THAT(queue.ready(), IsEmpty());
  say(ours, "x");
  EXPECT_THAT(await_ready(queue), SizeIs(1));
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(PreHandshakeQueueTest, WhoHasSpokenDoesNotWait) {
  PreHandshakeQueue queue(false);
  auto ours = dial();
  say(ours, "x");
  Descriptor theirs = accept();
  ASSERT_TRUE(comes_alive(theirs.number()));
  EXPECT_TRUE(queue.add(std::move(theirs), later()));
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(PreHandshakeQueueTest, HalfARecordIsNotEnough) {
  PreHandshakeQueue queue(true);
  auto ours = dial();
  EXPECT_FALSE(queue.add(accept(), later()));
  // In three parts; the first ends inside the header.
  const std::string whole = record(300, 300);
  say(ours, whole.substr(0, 3));
  EXPECT_THAT(await_ready(queue), IsEmpty());
  EXPECT_TRUE(is_quiet(queue));
  say(ours, whole.substr(3, 100));
  EXPECT_THAT(await_ready(queue), IsEmpty());
  EXPECT_TRUE(is_quiet(queue));
  say(ours, whole.substr(103));
  const std::vector<PreHandshakeQueue::Arrival> ready = await_ready(queue);
  ASSERT_THAT(ready, SizeIs(1));
  // After that the socket behaves normally again.
  std::array<char, 1000> bytes{};
  EXPECT_EQ(::recv(ready[0].socket.number(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(whole.size()));
  say(ours, "x");
  EXPECT_TRUE(comes_alive(ready[0].socket.number()));
}

TEST_F(PreHandshakeQueueTest, WhatIsNoTlsNeedNotBeAwaited) {
  PreHandshakeQueue queue(true);
  for (const std::string& said : {std::string("G"), record(20'000, 0)}) {
    auto ours = dial();
    EXPECT_FALSE(queue.add(accept(), later()));
    say(ours, said);
    EXPECT_THAT(await_ready(queue), SizeIs(1));
  }
}

TEST_F(PreHandshakeQueueTest, WhoHasGoneIsForgotten) {
  PreHandshakeQueue queue(true);
  auto silent = dial();
  EXPECT_FALSE(queue.add(accept(), later()));
  silent.close();
  EXPECT_THAT(await_ready(queue), IsEmpty());
  EXPECT_EQ(queue.ended(), 1U);
  auto half = dial();
  say(half, record(300, 10));
  Descriptor theirs = accept();
  ASSERT_TRUE(comes_alive(theirs.number()));
  EXPECT_FALSE(queue.add(std::move(theirs), later()));
  half.shutdown(asio::ip::tcp::socket::shutdown_send);
  EXPECT_THAT(await_ready(queue), IsEmpty());
  EXPECT_EQ(queue.ended(), 2U);
  EXPECT_EQ(queue.size(), 0U);
}

// Urgent data hides everything after it from a peek until it has been read.
TEST_F(PreHandshakeQueueTest, WhoCannotBeSeenThroughIsHandedBack) {
  for (const std::size_t seen : {std::size_t{3}, std::size_t{20}}) {
    PreHandshakeQueue queue(true);
    auto ours = dial();
    EXPECT_FALSE(queue.add(accept(), later()));
    say(ours, record(300, 300).substr(0, seen));
    EXPECT_THAT(await_ready(queue), IsEmpty());
    ASSERT_EQ(::send(ours.native_handle(), "x", 1, MSG_OOB), 1);
    say(ours, std::string(600, 'x'));
    EXPECT_THAT(await_ready(queue), SizeIs(1));
    EXPECT_TRUE(is_quiet(queue));
  }
}

TEST_F(PreHandshakeQueueTest, WhoCameFirstIsTheOldest) {
  PreHandshakeQueue queue(false);
  const auto now = std::chrono::steady_clock::now();
  auto one = dial();
  EXPECT_FALSE(queue.add(accept(), now + 1h));
  auto two = dial();
  EXPECT_FALSE(queue.add(accept(), now + 2h));
  EXPECT_EQ(queue.first_until(), now + 1h);
  queue.take_oldest().reset();
  EXPECT_EQ(queue.first_until(), now + 2h);
  EXPECT_EQ(queue.size(), 1U);
  std::array<char, 1> bytes{};
  std::error_code error;
  EXPECT_EQ(one.receive(asio::buffer(bytes), 0, error), 0U);
  EXPECT_EQ(error, asio::error::eof);
}

}  // namespace
}  // namespace disttf::net
