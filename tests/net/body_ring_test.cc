// Connections of a primary and its backup that have agreed on memory for bodies.
#include "net/memory/body_ring.h"

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/this_coro.hpp>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/tls/secrets.h"
#include "net/wire/bare_message.h"
#include "net/wire/messages.h"
#include "tests/net/body_ring_fixture.h"
#include "tests/net/test_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

TEST_F(BodyRingTest, BodiesAreLeftOnceTheyHaveAgreed) {
  run([this](ServerConnection& backup) -> asio::awaitable<void> {
    co_await agree(backup);
    for (const std::uint64_t entry : {3U, 4U, 5U}) {
      EXPECT_FALSE(update(backup, entry, kBody - entry));
      co_await await_ack(backup, entry);
    }
  });
  for (const char* what : {"1 sent", "2 sent", "3 in place", "4 in place", "5 in place"}) {
    EXPECT_TRUE(happened_.wait_for(what)) << what;
  }
}

TEST_F(BodyRingTest, ABodyMayBeWrittenInItsSlot) {
  run([this](ServerConnection& backup) -> asio::awaitable<void> {
    EXPECT_TRUE(backup.place_for(1, kBody - 1).empty()) << "there are no slots";
    co_await agree(backup);
    EXPECT_TRUE(backup.place_for(1, kBody).empty()) << "there is no room";
    for (const std::uint64_t entry : {3U, 4U}) {
      const std::span<std::byte> place = backup.place_for(1, kBody - 1);
      EXPECT_EQ(place.size(), kBody - 1);
      if (place.empty()) co_return;
      EXPECT_TRUE(backup.place_for(1, kBody - 1).empty()) << "the slot is reserved for one body";
      const std::vector<std::byte> body = body_of(entry, kBody);
      std::ranges::copy(std::span(body).subspan(1), place.begin());
      EXPECT_EQ(backup.send_acknowledged({.kind = FrameKind::kUpdate, .request_id = entry},
                                         {body.front()}, place),
                Delivery::kLeft);
      EXPECT_TRUE(backup.place_for(1, kBody - 1).empty()) << "the backup may not have read it";
      co_await await_ack(backup, entry);
    }
    EXPECT_FALSE(update(backup, 5)) << "the slot is free again";
    co_await await_ack(backup, 5);
  });
  for (const char* what : {"3 in place", "4 in place", "5 in place"}) {
    EXPECT_TRUE(happened_.wait_for(what)) << what;
  }
}

TEST_F(BodyRingTest, WithoutAFreeSlotABodyIsSent) {
  run([this](ServerConnection& backup) -> asio::awaitable<void> {
    co_await agree(backup);
    EXPECT_FALSE(update(backup, 3));
    EXPECT_TRUE(update(backup, 4)) << "the backup may not have read the third";
    co_await await_ack(backup, 3);
    EXPECT_FALSE(update(backup, 5));
    co_await await_ack(backup, 4);
    EXPECT_TRUE(update(backup, 6)) << "an acknowledged fourth does not free the fifth";
    co_await await_ack(backup, 5);
    co_await await_ack(backup, 6);
  });
  for (const char* what : {"3 in place", "4 sent", "5 in place", "6 sent"}) {
    EXPECT_TRUE(happened_.wait_for(what)) << what;
  }
}

// Three bodies that the backup reads after all of them were left.
TEST_F(BodyRingTest, EachBodyHasASlotOfItsOwn) {
  slots_ = BodyRing::create({.bytes = kBody, .count = 3});
  terms_.most = BodyRing::largest({.bytes = kBody, .count = 3});
  run([this](ServerConnection& backup) -> asio::awaitable<void> {
    co_await agree(backup);
    may_read_ = false;
    for (const std::uint64_t entry : {3U, 4U, 5U}) {
      EXPECT_FALSE(update(backup, entry));
    }
    EXPECT_TRUE(update(backup, 6));
    may_read_ = true;
    co_await await_ack(backup, 3);
    co_await await_ack(backup, 4);
    EXPECT_FALSE(update(backup, 7)) << "two are free";
    EXPECT_FALSE(update(backup, 8));
    EXPECT_TRUE(update(backup, 9));
    for (const std::uint64_t entry : {5U, 6U, 7U, 8U, 9U}) {
      co_await await_ack(backup, entry);
    }
  });
  for (const char* what : {"3 in place", "4 in place", "5 in place", "6 sent", "7 in place"}) {
    EXPECT_TRUE(happened_.wait_for(what)) << what;
  }
}

// The next body with the whole state must be present before the one it replaces is overwritten.
TEST_F(BodyRingTest, WhatAWholeStateIsNeededForStaysUntilTheNextOneIsAcknowledged) {
  const BodyRing::Shape shape{.bytes = kBody, .count = 3, .whole_bytes = 3 * kBody};
  slots_ = BodyRing::create(shape);
  terms_.most = BodyRing::largest(shape);
  run([this](ServerConnection& backup) -> asio::awaitable<void> {
    co_await agree(backup);
    EXPECT_FALSE(update(backup, 3)) << "there is no whole state yet";
    co_await await_ack(backup, 3);
    EXPECT_FALSE(update(backup, 4, 3 * kBody));
    co_await await_ack(backup, 4);
    for (const std::uint64_t entry : {5U, 6U, 7U}) {
      EXPECT_FALSE(update(backup, entry));
      co_await await_ack(backup, entry);
    }
    EXPECT_TRUE(update(backup, 8)) << "all of them are needed, with the fourth";
    co_await await_ack(backup, 8);
    EXPECT_FALSE(update(backup, 9, 3 * kBody));
    EXPECT_TRUE(update(backup, 10)) << "the backup may not have the ninth";
    EXPECT_TRUE(update(backup, 11, 3 * kBody)) << "the fourth is needed until it has";
    co_await await_ack(backup, 9);
    for (const std::uint64_t entry : {12U, 13U, 14U}) {
      EXPECT_FALSE(update(backup, entry));
    }
    EXPECT_FALSE(update(backup, 15, 2 * kBody)) << "the fourth is free";
    for (const std::uint64_t entry : {10U, 11U, 12U, 13U, 14U, 15U}) {
      co_await await_ack(backup, entry);
    }
  });
  for (const char* what : {"3 in place", "4 in place", "7 in place", "8 sent", "9 in place",
                           "10 sent", "11 sent", "14 in place", "15 in place"}) {
    EXPECT_TRUE(happened_.wait_for(what)) << what;
  }
}

// TLS reads whatever arrived together with the agreement's frame from the socket too.
TEST_F(BodyRingTest, AnUpdateRightBehindTheAgreementIsRead) {
  Secrets secrets{std::string(32, '1'), "one"};
  ListenerOptions options = ps0_options();
  options.credentials = &secrets;
  TestServer server([this](Connection connection) { return serve(std::move(connection)); },
                    std::move(options));
  std::promise<void> both_are_sent;
  std::promise<void> is_held;
  std::thread holder;
  run_with(
      server,
      [&](ServerConnection& backup) -> asio::awaitable<void> {
        backup.offer(std::move(slots_));
        EXPECT_TRUE(update(backup, 1));
        EXPECT_TRUE(happened_.wait_for("ACK 1")) << "it has answered the offer";
        holder = std::thread([&] {
          server.ask([&](Listener&) {
            is_held.set_value();
            both_are_sent.get_future().wait();
            return 0;
          });
        });
        is_held.get_future().wait();
        co_await await_ack(backup, 1);  // this completes the agreement
        EXPECT_TRUE(update(backup, 2, /*bytes=*/100));
        both_are_sent.set_value();
        holder.join();
        co_await await_ack(backup, 2);
      },
      &secrets);
}

// The slot of the headers has room for seven.
TEST_F(BodyRingTest, HeadersThatHaveNoRoomAreSent) {
  slots_ = BodyRing::create({.bytes = kBody, .count = 9});
  terms_.most = BodyRing::largest({.bytes = kBody, .count = 9});
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    may_read_ = false;
    for (std::uint64_t entry = 3; entry <= 11; ++entry) {
      EXPECT_FALSE(update(backup, entry)) << "the body's slot has room";
    }
    may_read_ = true;
    for (std::uint64_t entry = 3; entry <= 11; ++entry) {
      make_poll(server);
      co_await await_ack(backup, entry);
    }
  });
  for (std::uint64_t entry = 3; entry <= 11; ++entry) {
    EXPECT_TRUE(is_acknowledged(entry, entry <= 9 ? "left" : "sent")) << entry;
  }
  EXPECT_EQ(happened_.count("in place"), 9);
}

// Neither an update nor its acknowledgement uses the socket.
TEST_F(BodyRingTest, HeadersAreLeftForABackupThatIsAwake) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    for (std::uint64_t entry = 3; entry <= 20; ++entry) {
      EXPECT_FALSE(update(backup, entry));
      make_poll(server);
      EXPECT_TRUE(is_acknowledged(entry, "left"));
      EXPECT_FALSE(poll(server)) << "a header is taken only once";
      co_await await_ack(backup, entry);
    }
  });
  EXPECT_EQ(happened_.count("in place"), 18);
}

// A frame wakes the backup, which then checks memory.
TEST_F(BodyRingTest, AParkedBackupIsWoken) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    set_parked(server, true);
    EXPECT_FALSE(update(backup, 3));
    EXPECT_TRUE(is_acknowledged(3, "left")) << "as the update was";
    EXPECT_FALSE(poll(server));
    co_await await_ack(backup, 3);
  });
  EXPECT_TRUE(happened_.wait_for("3 in place"));
}

TEST_F(BodyRingTest, ABackupWithoutASlotIsSentHeaders) {
  TestServer server([this](Connection connection) { return serve(std::move(connection)); });
  run_with(server, [&](ServerConnection& backup) -> asio::awaitable<void> {
    co_await agree(backup);
    set_parked(server, false);
    EXPECT_FALSE(update(backup, 3));
    EXPECT_TRUE(is_acknowledged(3, "sent"));
    co_await await_ack(backup, 3);
  });
}

// A waiting read ends when the primary has found a header. A primary that is parked gets a frame
// after the acknowledgement.
TEST_F(BodyRingTest, APrimaryIsWokenByPollingOrByAWakeUp) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    EXPECT_FALSE(backup.poll()) << "no header is present";
    EXPECT_FALSE(update(backup, 3));
    const auto executor = co_await asio::this_coro::executor;
    asio::post(executor, [&] {
      make_poll(server);
      EXPECT_TRUE(is_acknowledged(3, "left"));
      EXPECT_TRUE(backup.poll());
    });
    co_await await_ack(backup, 3);
    EXPECT_FALSE(backup.poll()) << "a header is taken only once";

    EXPECT_FALSE(poll(server)) << "it waits for the next header";
    backup.set_parked(true);
    EXPECT_FALSE(update(backup, 4));
    asio::post(executor, [&] { make_poll(server); });
    co_await await_ack(backup, 4);
    EXPECT_TRUE(is_acknowledged(4, "left"));
    FrameHeader header;
    EXPECT_FALSE(co_await backup.read_header(header, 30s));
    EXPECT_TRUE(is_bodiless<Heartbeat>(header));
  });
}

TEST_F(BodyRingTest, AnUpdateDoesNotOvertakeAFrameThatMayNotHaveBeenRead) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    backup.send({.kind = FrameKind::kComplete, .request_id = 3});
    EXPECT_FALSE(update(backup, 4));
    co_await await_ack(backup, 3);
    co_await await_ack(backup, 4);
    EXPECT_TRUE(is_acknowledged(4, "sent")) << "as the update was, behind the frame";
    backup.send(Heartbeat{}.to_header());
    EXPECT_FALSE(update(backup, 5));
    make_poll(server);
    EXPECT_TRUE(is_acknowledged(5, "left")) << "a heartbeat may be overtaken";
    co_await await_ack(backup, 5);
    EXPECT_FALSE(poll(server));
  });
}

// As many as there are bodies, before any is read, and their acknowledgements.
TEST_F(BodyRingTest, HeadersThatAreLeftBehindEachOtherAreReadInTheirOrder) {
  slots_ = BodyRing::create({.bytes = kBody, .count = 3});
  terms_.most = BodyRing::largest({.bytes = kBody, .count = 3});
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    for (std::uint64_t entry = 3; entry <= 20; entry += 3) {
      for (const std::uint64_t each : {entry, entry + 1, entry + 2}) {
        EXPECT_FALSE(update(backup, each));
      }
      make_poll(server);
      for (const std::uint64_t each : {entry, entry + 1, entry + 2}) {
        EXPECT_TRUE(is_acknowledged(each, "left"));
      }
      for (const std::uint64_t each : {entry, entry + 1, entry + 2}) {
        co_await await_ack(backup, each);
      }
      EXPECT_FALSE(poll(server));
    }
  });
  EXPECT_EQ(happened_.count("in place"), 18);
}

// The backup offers a slot at an invalid position.
TEST_F(BodyRingTest, ABackupWhoseSlotLiesNowhereIsSentAll) {
  terms_.slot = 8;
  expect_all_is_sent();
}

// Headers in memory are read first, because the frame was sent after them.
TEST_F(BodyRingTest, AFrameDoesNotOvertakeAnUpdate) {
  run_awake([this](ServerConnection& backup, TestServer&) -> asio::awaitable<void> {
    EXPECT_FALSE(update(backup, 3));
    backup.send({.kind = FrameKind::kConclude, .request_id = 4});
    co_await await_ack(backup, 3);
    co_await await_ack(backup, 4);
  });
  EXPECT_TRUE(happened_.wait_for("ACK 3 left"));
  EXPECT_TRUE(happened_.wait_for("ACK 4 sent"));
}

TEST_F(BodyRingTest, AHeaderInMemoryThatIsNoAckEndsTheConnection) {
  run_awake([](ServerConnection& backup, TestServer&) -> asio::awaitable<void> {
    backup.set_parked(true);  // so that it needs a wake
    backup.send({.kind = FrameKind::kBest});
    FrameHeader header;
    EXPECT_EQ(co_await backup.read_header(header, 30s), WireError::kUnexpected);
    EXPECT_FALSE(backup.is_open());
  });
}

TEST_F(BodyRingTest, ABodyThatIsLargerThanASlotIsSent) {
  run([this](ServerConnection& backup) -> asio::awaitable<void> {
    co_await agree(backup);
    EXPECT_TRUE(update(backup, 3, kBody + 1));
    co_await await_ack(backup, 3);
    EXPECT_FALSE(update(backup, 4));
    co_await await_ack(backup, 4);
  });
  EXPECT_TRUE(happened_.wait_for("3 sent"));
}

TEST_F(BodyRingTest, ABackupThatDeclinesIsSentAll) {
  terms_.memory = nullptr;
  expect_all_is_sent();
}

TEST_F(BodyRingTest, MoreThanTheBackupHasAUseForIsNotMapped) {
  terms_.most = kBody;
  expect_all_is_sent();
}

// A backup that claims to have fetched the memory but has not: no descriptor is handed to any other
// process.
TEST_F(BodyRingTest, WhoDoesNotComeForTheMemoryIsSentAll) {
  TestServer server([this](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    while (!co_await connection->read_header(header, 0ms)) {
      std::vector<std::byte> body(header.body_size);
      if (co_await connection->read_body(body, 1s)) co_return;
      if (header.kind != FrameKind::kShare) {
        connection->send(Ack{header.request_id}.to_header());
        continue;
      }
      SharedOffer offer;
      EXPECT_FALSE(decode(body, offer));
      happened_.add("offered " + std::to_string(offer.size) + " bytes");
      connection->send(SharedFrame{header.request_id}.to_header(),
                       encode(SharedOffer{.token = 1, .size = kPageBytes}));
    }
  });
  run_with(server, [this](ServerConnection& backup) -> asio::awaitable<void> {
    co_await agree(backup);
    EXPECT_TRUE(update(backup, 3));
    co_await await_ack(backup, 3);
  });
  EXPECT_TRUE(happened_.wait_for("offered 12864 bytes"));
  EXPECT_TRUE(happened_.wait_for("offered 0 bytes"));
}

TEST_F(BodyRingTest, AnAnswerThatIsNoneIsRefused) {
  TestServer server([](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    if (co_await connection->read_header(header, 0ms)) co_return;
    std::vector<std::byte> body(header.body_size);
    if (co_await connection->read_body(body, 1s)) co_return;
    connection->send(SharedFrame{header.request_id}.to_header(), std::vector<std::byte>(5));
    static_cast<void>(co_await connection->read_header(header, 30s));
  });
  run_with(server, [this](ServerConnection& backup) -> asio::awaitable<void> {
    backup.offer(std::move(slots_));
    FrameHeader header;
    EXPECT_TRUE(co_await backup.read_header(header, 30s));
    EXPECT_EQ(backup.refused_with(), "malformed SHARED frame");
  });
}

}  // namespace
}  // namespace disttf::net
