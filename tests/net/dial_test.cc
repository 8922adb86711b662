#include "net/tcp/dial.h"

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>

#include "tests/net/test_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

class DialTest : public ::testing::Test {
 protected:
  [[nodiscard]] Dialed dial_and_wait(const Address& address, std::chrono::milliseconds timeout) {
    Dialed dialed;
    NameLookup lookup;
    run([&]() -> asio::awaitable<void> {
      dialed = co_await dial(context_, address, hello_of_worker_1(), {}, timeout, lookup);
    });
    return dialed;
  }

  void run(std::function<asio::awaitable<void>()> coroutine) {
    asio::co_spawn(context_, coroutine, [this](const std::exception_ptr& failure) {
      EXPECT_FALSE(failure);
      context_.stop();  // the timer of a connection may be set far ahead
    });
    context_.restart();
    context_.run();
  }

  asio::io_context context_{1};
};

TEST_F(DialTest, IsWelcomedAndExchangesFrames) {
  TestServer server(answer_every_header);
  server.start();
  const Dialed dialed = dial_and_wait(server.address(), 30s);
  ASSERT_TRUE(dialed.connection) << dialed.error.message();
  EXPECT_EQ(dialed.welcome.step, 9U);
  EXPECT_NE(dialed.connection->peer_text().find("ps 0 (127.0.0.1:"), std::string::npos);
  FrameHeader header;
  run([&]() -> asio::awaitable<void> {
    dialed.connection->send({.kind = FrameKind::kPull, .request_id = 3});
    EXPECT_FALSE(co_await dialed.connection->read_header(header, 30s));
    dialed.connection->close();
  });
  EXPECT_EQ(header.kind, FrameKind::kAck);
  EXPECT_EQ(header.request_id, 3U);
}

TEST_F(DialTest, BringsTheSentenceOfARefusal) {
  TestServer server(answer_every_header);
  server.refuse_all({.exit_code = kExitRestartMe, .sentence = "the run has failed"});
  server.start();
  const Dialed dialed = dial_and_wait(server.address(), 30s);
  EXPECT_FALSE(dialed.connection);
  EXPECT_EQ(dialed.error, WireError::kRefused);
  EXPECT_EQ(dialed.refusal.sentence, "the run has failed");
}

TEST_F(DialTest, FailsWithoutAListener) {
  std::optional<TestServer> server(std::in_place, answer_every_header);
  const Address address = server->address();
  server.reset();
  const Dialed dialed = dial_and_wait(address, 30s);
  EXPECT_FALSE(dialed.connection);
  EXPECT_EQ(dialed.error, asio::error::connection_refused);
}

// The kernel accepts connections for a listener that never answers.
TEST_F(DialTest, GivesUpOnSilence) {
  const TestServer server(answer_every_header);
  const Dialed dialed = dial_and_wait(server.address(), 50ms);
  EXPECT_FALSE(dialed.connection);
  EXPECT_EQ(dialed.error, std::errc::timed_out);
}

}  // namespace
}  // namespace disttf::net
