#include "net/tcp/server_connection.h"

#include <gtest/gtest.h>

#include <asio/any_io_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <vector>

#include "net/tcp/drain_all.h"
#include "tests/net/test_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBig = std::size_t{8} << 20U;  // more than a socket accepts at once

class ServerConnectionTest : public ::testing::Test {
 protected:
  // Starts a server that runs `serve`, and connects worker 1 to it.
  void connect(TestServer::Serve serve, const ListenerOptions& options = ps0_options()) {
    server_ = std::make_unique<LiveServer>(std::move(serve), options);
    OpenedChannel opened =
        open_channel(server_->address(), hello_of_worker_1(), interrupt_, patience());
    ASSERT_TRUE(opened.channel) << opened.error.message();
    channel_ = std::move(opened.channel);
  }
  [[nodiscard]] std::vector<std::byte> receive_frame(FrameHeader& header) {
    EXPECT_FALSE(channel_->receive_header(header, patience()));
    std::vector<std::byte> body(header.body_size);
    EXPECT_FALSE(channel_->receive_body(body, patience()));
    return body;
  }
  void send(FrameKind kind, std::span<const std::byte> body = {}) {
    ASSERT_FALSE(channel_->send({.kind = kind, .request_id = 4}, body, patience()));
  }
  void record(const std::error_code& error) { server_->events().add("read: " + error.message()); }
  [[nodiscard]] bool read_ended_with(std::errc code) {
    return server_->events().wait_for("read: " + std::make_error_code(code).message());
  }

  Interrupt interrupt_;
  std::unique_ptr<LiveServer> server_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(ServerConnectionTest, KnowsWhoSpeaks) {
  connect([this](Connection connection) -> asio::awaitable<void> {
    server_->events().add(connection->peer_text());
    co_return;
  });
  EXPECT_TRUE(server_->events().wait_for("worker 1 (127.0.0.1:"));
}

TEST_F(ServerConnectionTest, ReadsABodyIntoPlaceAndSendsItBack) {
  connect([](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    while (!co_await connection->read_header(header, 0ms)) {
      std::vector<std::byte> body(header.body_size);
      if (co_await connection->read_body(body, 1s)) co_return;
      connection->send({.kind = FrameKind::kParameters, .request_id = header.request_id},
                       std::move(body));
    }
  });
  std::vector<std::byte> tensor(kBig);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<std::byte>(i * 7);
  for (int round = 0; round < 3; ++round) {
    send(FrameKind::kPushPull, tensor);
    FrameHeader header;
    EXPECT_EQ(receive_frame(header), tensor);
    EXPECT_EQ(header.request_id, 4U);
  }
}

TEST_F(ServerConnectionTest, DiscardsABodyAndReadsTheNextHeader) {
  connect([](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    while (!co_await connection->read_header(header, 0ms)) {
      if (co_await connection->discard_body(header.body_size, 1s)) co_return;
      connection->send({.kind = FrameKind::kAck, .step = header.body_size});
    }
  });
  send(FrameKind::kPushPull, std::vector<std::byte>(kBig + 3));
  send(FrameKind::kPull);
  FrameHeader header;
  static_cast<void>(receive_frame(header));
  EXPECT_EQ(header.step, kBig + 3);
  static_cast<void>(receive_frame(header));
  EXPECT_EQ(header.step, 0U);
}

TEST_F(ServerConnectionTest, CutsOffAPeerThatFallsSilent) {
  connect([this](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    record(co_await connection->read_header(header, 20ms));
  });
  EXPECT_TRUE(read_ended_with(std::errc::timed_out));
  FrameHeader header;
  EXPECT_EQ(channel_->receive_header(header, patience()), asio::error::eof);
}

TEST_F(ServerConnectionTest, CutsOffAPeerThatStallsInABody) {
  connect([this](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    if (co_await connection->read_header(header, 0ms)) co_return;
    std::vector<std::byte> body(header.body_size + 1);
    record(co_await connection->read_body(body, 20ms));
  });
  send(FrameKind::kPushPull, std::vector<std::byte>(10));
  EXPECT_TRUE(read_ended_with(std::errc::timed_out));
}

TEST_F(ServerConnectionTest, TellsAReaderThatThePeerHungUp) {
  connect([this](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    const std::error_code error = co_await connection->read_header(header, 0ms);
    server_->events().add(error == asio::error::eof ? "eof" : error.message());
  });
  channel_->close();
  EXPECT_TRUE(server_->events().wait_for("eof"));
}

TEST_F(ServerConnectionTest, ClosesOnABadHeader) {
  server_ = std::make_unique<LiveServer>([this](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    const std::error_code error = co_await connection->read_header(header, 0ms);
    server_->events().add(error.message() + (connection->is_open() ? ", open" : ", closed"));
  });
  RawClient client(server_->address());
  client.write(frame_bytes({}, encode(hello_of_worker_1())));
  client.write(std::string(kHeaderBytes, 'x'));
  EXPECT_TRUE(server_->events().wait_for("not a disttf frame, closed"));
}

TEST_F(ServerConnectionTest, SendsFramesInTheOrderTheyWereQueued) {
  constexpr std::uint64_t kFrames = 40;
  ListenerOptions options = ps0_options();
  options.limits.max_queued_bytes = kBig * kFrames;
  connect(
      [](Connection connection) -> asio::awaitable<void> {
        for (std::uint64_t i = 0; i < kFrames; ++i) {
          connection->send({.kind = FrameKind::kParameters, .step = i},
                           std::vector<std::byte>(i % 2 == 0 ? kBig / 16 : 0));
        }
        static_cast<void>(co_await connection->drained(30s));
      },
      options);
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    FrameHeader header;
    const std::size_t size = receive_frame(header).size();
    EXPECT_EQ(header.step, i);
    EXPECT_EQ(size, i % 2 == 0 ? kBig / 16 : 0);
  }
}

TEST_F(ServerConnectionTest, SendsABorrowedBodyFromWhereItLies) {
  std::vector<std::byte> parameters(kBig);
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = static_cast<std::byte>(i);
  connect([this, &parameters](Connection connection) -> asio::awaitable<void> {
    connection->send_borrowed({.kind = FrameKind::kParameters}, parameters, nullptr);
    server_->events().add(co_await connection->drained(30s) ? "drained" : "not drained");
  });
  FrameHeader header;
  EXPECT_EQ(receive_frame(header), parameters);
  EXPECT_TRUE(server_->events().wait_for("drained"));
}

// The address sanitizer would report a read of the freed body.
TEST_F(ServerConnectionTest, TouchesNoBorrowedBodyAfterClose) {
  auto parameters = std::make_unique<std::vector<std::byte>>(kBig);
  connect([this, &parameters](Connection connection) -> asio::awaitable<void> {
    connection->send_borrowed({.kind = FrameKind::kParameters}, *parameters, nullptr);
    connection->send_borrowed({.kind = FrameKind::kParameters}, *parameters, nullptr);
    connection->close();
    parameters.reset();
    server_->events().add("freed");
    co_return;
  });
  ASSERT_TRUE(server_->events().wait_for("freed"));
  std::vector<std::byte> received(kBig);
  FrameHeader header;
  EXPECT_FALSE(channel_->receive_header(header, patience()));
  EXPECT_TRUE(channel_->receive_body(received, patience()));  // only what the kernel had
}

TEST_F(ServerConnectionTest, KeepsWhatIsStillBeingSentToARefusedPeer) {
  auto parameters = std::make_shared<std::vector<std::byte>>(kBig, std::byte{3});
  const std::weak_ptr<const std::vector<std::byte>> watched = parameters;
  ListenerOptions options = ps0_options();
  options.limits.linger = 1h;
  connect(
      [&](Connection connection) -> asio::awaitable<void> {
        connection->send_borrowed({.kind = FrameKind::kParameters}, *parameters, parameters);
        connection->refuse({});
        parameters.reset();  // as a ps does when it rebuilds its shard
        server_->events().add(watched.expired() ? "freed" : "kept");
        co_return;
      },
      options);
  ASSERT_TRUE(server_->events().wait_for("kept"));
  FrameHeader header;
  EXPECT_EQ(receive_frame(header), std::vector<std::byte>(kBig, std::byte{3}));
  channel_->close();
  const Deadline limit = patience();
  while (!watched.expired()) {
    ASSERT_LT(Clock::now(), limit);
  }
}

TEST_F(ServerConnectionTest, ClosesWhenThePeerLetsTheQueueOverflow) {
  connect([this](Connection connection) -> asio::awaitable<void> {
    connection->send({.kind = FrameKind::kParameters}, std::vector<std::byte>(kBig));
    const bool first_fits = connection->is_open();
    connection->send({.kind = FrameKind::kParameters}, std::vector<std::byte>(kBig));
    server_->events().add(first_fits && !connection->is_open() ? "closed at the second" : "?");
    co_return;
  });
  EXPECT_TRUE(server_->events().wait_for("closed at the second"));
}

TEST_F(ServerConnectionTest, CutsOffAPeerThatDoesNotRead) {
  ListenerOptions options = ps0_options();
  options.limits.write_timeout = 20ms;
  connect(
      [this](Connection connection) -> asio::awaitable<void> {
        connection->send({.kind = FrameKind::kParameters}, std::vector<std::byte>(kBig));
        FrameHeader header;
        record(co_await connection->read_header(header, 0ms));
      },
      options);
  EXPECT_TRUE(read_ended_with(std::errc::timed_out));
}

TEST_F(ServerConnectionTest, SaysWhenFramesHaveNotLeftInTime) {
  connect([this](Connection connection) -> asio::awaitable<void> {
    connection->send({.kind = FrameKind::kParameters}, std::vector<std::byte>(kBig));
    server_->events().add(co_await connection->drained(10ms) ? "?" : "not drained");
  });
  EXPECT_TRUE(server_->events().wait_for("not drained"));
}

// The end of a ps must not take longer with each peer that has stopped reading.
TEST_F(ServerConnectionTest, SeveralAreDrainedWithinOneLimit) {
  connect([this](Connection connection) -> asio::awaitable<void> {
    connection->send({.kind = FrameKind::kParameters}, std::vector<std::byte>(kBig));
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    const auto is_drained = std::make_shared<bool>(false);
    asio::co_spawn(executor,
                   drain_all(std::vector<std::shared_ptr<FrameConnection>>(4, connection), 100ms),
                   [is_drained](const std::exception_ptr&) { *is_drained = true; });
    // Of two timers the one that expires first is handled first, however late that is.
    asio::steady_timer timer(executor, 250ms);
    co_await timer.async_wait(asio::use_awaitable);
    server_->events().add(*is_drained ? "in one limit" : "one after the other");
  });
  EXPECT_TRUE(server_->events().wait_for("in one limit"));
}

TEST_F(ServerConnectionTest, RefusalReachesAPeerThatIsStillSending) {
  connect([](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    if (co_await connection->read_header(header, 0ms)) co_return;
    connection->refuse({.exit_code = 2, .sentence = "that is no gradient of mine"},
                       header.request_id);
  });
  send(FrameKind::kPushPull, std::vector<std::byte>(kBig));
  FrameHeader header;
  ASSERT_FALSE(channel_->receive_header(header, patience()));
  EXPECT_EQ(header.request_id, 4U);
  const Refusal refusal = receive_refusal(*channel_, header, patience());
  EXPECT_EQ(refusal.sentence, "that is no gradient of mine");
}

TEST_F(ServerConnectionTest, RefusalEndsAReadThatIsWaiting) {
  ListenerOptions options = ps0_options();
  options.limits.linger = 1h;  // the peer stays connected: nothing else can end the read
  connect(
      [this](Connection connection) -> asio::awaitable<void> {
        asio::steady_timer soon(co_await asio::this_coro::executor, 0ms);
        soon.async_wait([connection](std::error_code) { connection->refuse({}); });
        FrameHeader header;
        record(co_await connection->read_header(header, 0ms));
      },
      options);
  EXPECT_TRUE(read_ended_with(std::errc::operation_canceled));
}

TEST_F(ServerConnectionTest, ClosesARefusedPeerThatDoesNotHangUp) {
  ListenerOptions options = ps0_options();
  options.limits.linger = 20ms;
  connect(
      [](Connection connection) -> asio::awaitable<void> {
        connection->refuse({});
        co_return;
      },
      options);
  FrameHeader header;
  static_cast<void>(receive_frame(header));
  // The channel stays open on this side: only the time limit can free the server's socket.
  const Deadline limit = patience();
  while (server_->ask([](Listener& listener) { return listener.connections(); }) != 0) {
    ASSERT_LT(Clock::now(), limit);
  }
  EXPECT_EQ(header.kind, FrameKind::kRefused);
}

TEST_F(ServerConnectionTest, SendsWhatIsQueuedWhenItsOwnerReturns) {
  std::vector<std::byte> parameters(kBig, std::byte{3});
  Connection kept;  // the owner's table may keep it
  connect([&](Connection connection) -> asio::awaitable<void> {
    kept = connection;
    connection->send_borrowed({.kind = FrameKind::kParameters}, parameters, nullptr);
    co_return;
  });
  FrameHeader header;
  EXPECT_EQ(receive_frame(header), parameters);
  EXPECT_EQ(channel_->receive_header(header, patience()), asio::error::eof);
  server_->ask([&](Listener&) { kept.reset(); });
}

}  // namespace
}  // namespace disttf::net
