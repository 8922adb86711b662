// Updates in memory that belong to the backup from then on, even if their sender ends, and updates
// that do not, because no reader would take them.
#include <gtest/gtest.h>

#include <vector>

#include "tests/net/body_ring_fixture.h"

namespace disttf::net {
namespace {

using Rest = ServerConnection::Rest;

class HandedOffUpdates : public BodyRingTest {
 protected:
  HandedOffUpdates() { have_slots(4); }
  void have_slots(std::size_t count) {
    slots_ = BodyRing::create({.bytes = kBody, .count = count});
    terms_.most = BodyRing::largest({.bytes = kBody, .count = count});
  }
  // Returns the numbers of the updates that are left in memory for an ended connection.
  std::vector<std::uint64_t> rest() const {
    std::vector<std::uint64_t> entries;
    FrameHeader header;
    while (at_backup_->take_rest(header) == Rest::kHeader) {
      EXPECT_EQ(header.kind, FrameKind::kUpdate);
      EXPECT_EQ(header.flags, 0) << "the same as in a frame";
      const std::span<const std::byte> body = at_backup_->body_in_place().bytes;
      EXPECT_EQ(std::vector(body.begin(), body.end()), body_of(header.request_id, kBody));
      entries.push_back(header.request_id);
    }
    return entries;
  }
};

TEST_F(HandedOffUpdates, AnUpdateIsHandedOffOnceItIsLeftWithItsHeader) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    EXPECT_EQ(tell(backup, 3), Delivery::kHandedOff);
    make_poll(server);
    EXPECT_TRUE(is_acknowledged(3, "left"));
    co_await await_ack(backup, 3);
    backup.send({.kind = FrameKind::kComplete, .request_id = 4});
    EXPECT_EQ(tell(backup, 5), Delivery::kLeft) << "its header is left in memory, after the frame";
    co_await await_ack(backup, 4);
    co_await await_ack(backup, 5);
    set_parked(server, true);
    EXPECT_EQ(tell(backup, 6), Delivery::kHandedOff) << "also to a parked backup, which is woken";
    EXPECT_TRUE(is_acknowledged(6, "left"));
    co_await await_ack(backup, 6);
  });
}

// (The backup's thread does all of this, so it reads none of it meanwhile.)
TEST_F(HandedOffUpdates, WhatWasHandedOffIsThereWhenTheConnectionIsNot) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    server.ask([&](Listener&) {
      EXPECT_EQ(tell(backup, 3), Delivery::kHandedOff);
      EXPECT_EQ(tell(backup, 4), Delivery::kHandedOff);
      at_backup_->close();
      EXPECT_EQ(tell(backup, 5), Delivery::kLeft) << "the backup has not promised to take it";
      EXPECT_EQ(rest(), (std::vector<std::uint64_t>{3, 4, 5})) << "but it can be taken";
      EXPECT_EQ(tell(backup, 6), Delivery::kLeft);
      return 0;
    });
    co_return;
  });
}

// A backup that replaces the primary takes what is unread at that moment, and nothing later.
TEST_F(HandedOffUpdates, NothingIsHandedOffToOneThatHasTakenTheRest) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    server.ask([&](Listener&) {
      EXPECT_EQ(tell(backup, 3), Delivery::kHandedOff);
      EXPECT_EQ(rest(), std::vector<std::uint64_t>{3});
      EXPECT_TRUE(at_backup_->is_open());
      EXPECT_EQ(tell(backup, 4), Delivery::kLeft);
      return 0;
    });
    co_return;
  });
}

// It would be sent over the socket.
TEST_F(HandedOffUpdates, NothingIsHandedOffBeforeThereIsRoomForTheNextOne) {
  have_slots(2);
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    server.ask([&](Listener&) {
      EXPECT_EQ(tell(backup, 3), Delivery::kHandedOff);
      EXPECT_EQ(tell(backup, 4), Delivery::kLeft);
      return 0;
    });
    make_poll(server);
    EXPECT_TRUE(is_acknowledged(3, "left"));
    EXPECT_TRUE(is_acknowledged(4, "left"));
    co_await await_ack(backup, 3);
    EXPECT_EQ(tell(backup, 5), Delivery::kLeft);
    co_await await_ack(backup, 4);
  });
}

TEST_F(HandedOffUpdates, NonsenseAmongThemIsTold) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    server.ask([&](Listener&) {
      EXPECT_EQ(tell(backup, 3), Delivery::kHandedOff);
      const std::vector<std::byte> body = body_of(4, kBody);
      backup.send_acknowledged({.kind = FrameKind::kConclude, .request_id = 4}, {}, body);
      EXPECT_EQ(tell(backup, 5), Delivery::kHandedOff);
      EXPECT_EQ(rest(), std::vector<std::uint64_t>{3});
      FrameHeader header;
      EXPECT_EQ(at_backup_->take_rest(header), Rest::kNonsense);
      EXPECT_EQ(at_backup_->take_rest(header), Rest::kNonsense) << "including everything after it";
      return 0;
    });
    co_return;
  });
}

TEST_F(HandedOffUpdates, NothingIsHandedOffToOneWhoseMemoryIsAnotherRuns) {
  run_awake([this](ServerConnection& backup, TestServer& server) -> asio::awaitable<void> {
    server.ask([&](Listener&) {
      terms_.memory.reset();
      EXPECT_EQ(tell(backup, 3), Delivery::kLeft);
      return 0;
    });
    co_return;
  });
}

// The primary has connected again: updates left over the earlier connection belong to no reader.
TEST_F(HandedOffUpdates, NothingIsHandedOffOverTheConnectionBefore) {
  const Primary again = [this](ServerConnection& second) -> asio::awaitable<void> {
    co_await agree(second);
    EXPECT_EQ(tell(second, 3), Delivery::kHandedOff);
  };
  run_awake([&](ServerConnection& first, TestServer& server) -> asio::awaitable<void> {
    const ServerConnection* const at_first = server.ask([this](Listener&) { return at_backup_; });
    slots_ = BodyRing::create({.bytes = kBody, .count = 4});
    std::thread([&] { connect_to(server, again); }).join();
    server.ask([&](Listener&) {
      EXPECT_NE(at_first, at_backup_);
      EXPECT_EQ(tell(first, 3), Delivery::kLeft);
      return 0;
    });
    co_return;
  });
}

TEST_F(HandedOffUpdates, NothingIsLeftForOneWhoHasNotAgreed) {
  run([this](ServerConnection& backup) -> asio::awaitable<void> {
    EXPECT_EQ(tell(backup, 1), Delivery::kSent);
    co_await await_ack(backup, 1);
    FrameHeader header;
    EXPECT_EQ(backup.take_rest(header), Rest::kNone) << "the sender takes nothing";
  });
}

}  // namespace
}  // namespace disttf::net
