// Connections of a primary and its backup that have agreed on memory for bodies. The backup records
// how each body arrived and acknowledges it.
#pragma once

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/memory/body_ring.h"
#include "net/tcp/dial.h"
#include "net/tls/secrets.h"
#include "net/wire/bare_message.h"
#include "net/wire/messages.h"
#include "tests/net/test_server.h"

namespace disttf::net {

using namespace std::chrono_literals;

inline constexpr std::size_t kBody = 10'000;  // bytes

using Delivery = ServerConnection::Delivery;

class BodyRingTest : public ::testing::Test {
 protected:
  BodyRingTest() : slots_(BodyRing::create({.bytes = kBody})) {
    terms_ = {.memory = ParameterMemory::create(kPageBytes, 1),
              .least = kBody,
              .most = BodyRing::largest({.bytes = kBody})};
  }

  // The backup: records how each body arrived and acknowledges it.
  asio::awaitable<void> serve(Connection connection) {
    at_backup_ = connection.get();
    connection->answer_offers([this] { return terms_; });
    FrameHeader header;
    while (!co_await connection->read_header(header, 0ms)) {
      const bool is_in_place = !connection->body_in_place().bytes.empty();
      while (!may_read_) std::this_thread::yield();
      std::vector<std::byte> body(header.body_size);
      if (co_await connection->read_body(body, 1s)) co_return;
      EXPECT_EQ(header.flags, 0) << "the same as in a frame";
      EXPECT_EQ(body, body_of(header.request_id, body.size()));
      happened_.add(std::to_string(header.request_id) + (is_in_place ? " in place" : " sent"));
      if (header.kind == FrameKind::kHeartbeat) continue;
      if (header.kind == FrameKind::kBest) {
        leave_nonsense(*connection);
        continue;
      }
      const bool is_sent = connection->acknowledge(Ack{header.request_id});
      happened_.add("ACK " + std::to_string(header.request_id) + (is_sent ? " sent" : " left"));
    }
    happened_.add("refused: " + connection->refused_with());
  }

  // Leaves, instead of an ACK, a header that no ps leaves for a primary.
  void leave_nonsense(ServerConnection& connection) const {
    connection.send_borrowed({.kind = FrameKind::kParameters}, terms_.memory->parameters(),
                             terms_.memory);
  }

  static std::vector<std::byte> body_of(std::uint64_t entry, std::size_t bytes) {
    std::vector<std::byte> body(bytes, static_cast<std::byte>(entry));
    if (bytes != 0) body.back() = static_cast<std::byte>(entry + 1);
    return body;
  }

  // The primary's coroutine.
  using Primary = std::function<asio::awaitable<void>(ServerConnection&)>;
  void run(const Primary& primary) {
    TestServer server([this](Connection connection) { return serve(std::move(connection)); });
    run_with(server, primary);
  }
  void run_with(TestServer& server, const Primary& primary, Secrets* secrets = nullptr) {
    server.start();
    connect_to(server, primary, secrets);
  }
  static void connect_to(TestServer& server, const Primary& primary, Secrets* secrets = nullptr) {
    asio::io_context context{1};
    const auto coroutine = [&]() -> asio::awaitable<void> {
      NameLookup lookup;
      const Dialed dialed =
          co_await dial(context, server.address(), hello_of_worker_1(), {}, 30s, lookup, secrets);
      EXPECT_TRUE(dialed.connection) << dialed.error.message();
      if (!dialed.connection) co_return;
      co_await primary(*dialed.connection);
      dialed.connection->close();
    };
    asio::co_spawn(context, coroutine, [&](const std::exception_ptr& failure) {
      EXPECT_FALSE(failure);
      context.stop();
    });
    context.run();
  }

  static Delivery tell(ServerConnection& to, std::uint64_t entry, std::size_t bytes = kBody) {
    const std::vector<std::byte> body = body_of(entry, bytes);
    return to.send_acknowledged({.kind = FrameKind::kUpdate, .request_id = entry}, {body.front()},
                                std::span(body).subspan(1));
  }
  // Returns whether the body was sent over the socket.
  static bool update(ServerConnection& to, std::uint64_t entry, std::size_t bytes = kBody) {
    return tell(to, entry, bytes) == Delivery::kSent;
  }
  static asio::awaitable<void> await_ack(ServerConnection& from, std::uint64_t entry) {
    FrameHeader header;
    EXPECT_FALSE(co_await from.read_header(header, 30s));
    EXPECT_EQ(header, Ack{entry}.to_header());
  }
  // Two rounds, each followed by an answer, which shows that everything before it was read.
  asio::awaitable<void> agree(ServerConnection& with) {
    with.offer(std::move(slots_));
    for (const std::uint64_t entry : {1U, 2U}) {
      EXPECT_TRUE(update(with, entry)) << "they have not agreed yet";
      co_await await_ack(with, entry);
    }
  }

  // For a backup that has agreed on nothing.
  void expect_all_is_sent() {
    run([this](ServerConnection& backup) -> asio::awaitable<void> {
      co_await agree(backup);
      EXPECT_TRUE(update(backup, 3));
      co_await await_ack(backup, 3);
    });
    EXPECT_TRUE(happened_.wait_for("3 sent"));
  }

  // Both sides have agreed, and the backup is awake; it checks memory only when the test calls
  // look().
  using AwakePrimary = std::function<asio::awaitable<void>(ServerConnection&, TestServer&)>;
  void run_awake(const AwakePrimary& primary) {
    terms_.slot = 0;
    TestServer server([this](Connection connection) { return serve(std::move(connection)); });
    run_with(server, [&](ServerConnection& backup) -> asio::awaitable<void> {
      co_await agree(backup);
      set_parked(server, false);
      co_await primary(backup, server);
    });
  }
  // Sets the backup's parked flag.
  void set_parked(TestServer& server, bool parked) {
    server.ask([&](Listener&) {
      terms_.memory->set_parked(parked);
      return 0;
    });
  }
  // Returns whether the backup finds a header in memory.
  bool poll(TestServer& server) {
    return server.ask([this](Listener&) { return terms_.memory->poll(); });
  }
  // Makes the backup read a header that is present. If its socket had nothing left to read, it has
  // already read the header.
  void make_poll(TestServer& server) { static_cast<void>(poll(server)); }
  bool is_acknowledged(std::uint64_t entry, const std::string& how) {
    return happened_.wait_for("ACK " + std::to_string(entry) + " " + how);
  }

  std::unique_ptr<BodyRing> slots_;
  InPlaceTerms terms_;
  ServerConnection* at_backup_ = nullptr;  // the newest; of the server thread
  std::atomic<bool> may_read_ = true;      // the backup may read what has arrived
  Events happened_;
};

}  // namespace disttf::net
