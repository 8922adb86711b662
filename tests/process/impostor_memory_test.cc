// A peer that sends false offers of shared memory: the ps maps only memory that was offered and
// handed over, and otherwise continues with frames.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <system_error>

#include "data/file.h"
#include "net/memory/handover.h"
#include "net/memory/header_mailbox.h"
#include "net/memory/shared_memory.h"
#include "net/wire/messages.h"
#include "tests/process/impostor.h"

namespace disttf::test_process {
namespace {

using net::FrameKind;

class Impostor : public ImpostorFixture {
 protected:
  [[nodiscard]] std::uint64_t offered() const { return size_ * sizeof(float) + 1024; }
  // Expects that the offer is declined before any memory is handed over.
  static void expect_declined_at_once(const RawPeer& peer, std::uint64_t size) {
    std::error_code error;
    const auto peer_listener = net::PeerListener::open(error);
    ASSERT_TRUE(peer_listener) << error.message();
    const auto offer = net::encode(
        net::SharedOffer{.listener_name = peer_listener->name(), .token = 1, .size = size});
    Bytes body;
    EXPECT_EQ(reply_to(peer, frame({.kind = FrameKind::kShare}, offer), body), FrameKind::kShared);
    EXPECT_TRUE(body.empty()) << "the ps declines, so frames are used";
    EXPECT_FALSE(peer_listener->admit(1)) << "the ps must not hand over its own memory";
  }
  // Returns the offset at which the peer writes requests.
  [[nodiscard]] std::uint64_t slot() const {
    return offered() / net::kHeaderBytes * net::kHeaderBytes - net::kHeaderMailboxBytes;
  }
  // Writes this request into memory `times` times and sends a wake: the ps closes the connection.
  void expect_closed(const net::FrameHeader& header, std::size_t flip = 0, std::size_t times = 1) {
    std::error_code error;
    const auto memory = net::SharedMemory::create(offered(), error);
    ASSERT_TRUE(memory) << error.message();
    const RawPeer peer = connect();
    ASSERT_FALSE(share(peer, memory->descriptor()).empty());
    const net::HeaderMailbox at(memory->bytes().subspan(slot(), net::kHeaderMailboxBytes));
    for (std::size_t each = 0; each < times; ++each) {
      net::leave_header(at, header);
    }
    at[net::kHeaderBytes + 4] ^= static_cast<std::byte>(flip);
    peer.write(frame(net::Heartbeat{}.to_header(), {}));
    bool timed_out = false;
    static_cast<void>(peer.read_to_end(std::chrono::seconds(20), timed_out));
    EXPECT_FALSE(timed_out) << "the ps kept the connection";
    expect_parameters_unchanged();
  }
  // Returns the ps's answer after `descriptor` was handed over, with its token plus `beside`;
  // -1: none was.
  [[nodiscard]] Bytes share(const RawPeer& peer, int descriptor, std::uint64_t beside = 0) const {
    std::error_code error;
    const auto peer_listener = net::PeerListener::open(error);
    EXPECT_TRUE(peer_listener) << error.message();
    net::SharedOffer offer{
        .listener_name = peer_listener->name(), .token = 7, .size = offered(), .slot = slot()};
    Bytes body;
    const Bytes request = frame({.kind = FrameKind::kShare}, net::encode(offer));
    EXPECT_EQ(reply_to(peer, request, body), FrameKind::kShared);
    net::SharedOffer of_ps;
    EXPECT_FALSE(net::decode(body, of_ps));
    const auto handed = peer_listener->admit(offer.token);
    EXPECT_TRUE(handed) << "the ps must hand over its own memory first";
    if (handed && descriptor >= 0) {
      EXPECT_FALSE(net::hand_over(handed->peer, of_ps.token + beside, descriptor));
    }
    offer.listener_name = 0;
    offer.token = of_ps.token;
    const Bytes taken = frame({.kind = FrameKind::kShare}, net::encode(offer));
    EXPECT_EQ(reply_to(peer, taken, body), FrameKind::kShared);
    return body;
  }
};

TEST_F(Impostor, OffersMemoryInAnotherForm) {
  start_run();
  expect_refused(connect(), frame({.kind = FrameKind::kShare}, Bytes(23)), "malformed SHARE frame");
}

TEST_F(Impostor, OffersMemoryThatIsNotThere) {
  start_run();
  const auto offer =
      net::encode(net::SharedOffer{.listener_name = 1, .token = 1, .size = size_ * sizeof(float)});
  Bytes body;
  EXPECT_EQ(reply_to(connect(), frame({.kind = FrameKind::kShare}, offer), body),
            FrameKind::kShared);
  EXPECT_TRUE(body.empty()) << "the ps declines, so frames are used";
}

TEST_F(Impostor, OffersMoreMemoryThanTheModelNeeds) {
  start_run();
  expect_declined_at_once(connect(), std::uint64_t{1} << 30U);
  expect_declined_at_once(connect(), std::numeric_limits<std::uint64_t>::max());
}

TEST_F(Impostor, OffersTheMemoryThatTheModelNeeds) {
  start_run();
  std::error_code error;
  const auto memory = net::SharedMemory::create(offered(), error);
  ASSERT_TRUE(memory) << error.message();
  const RawPeer peer = connect();
  EXPECT_EQ(share(peer, memory->descriptor()).size(), net::kBodyBytes<net::SharedOffer>);
  EXPECT_EQ(share(peer, memory->descriptor()).size(), net::kBodyBytes<net::SharedOffer>)
      << "a second offer must be accepted";
}

TEST_F(Impostor, HandsOverOtherMemoryThanItHasOffered) {
  start_run();
  // The file costs the sender nothing: its pages are allocated on the first access.
  const data::FileDescriptor sparse(memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(sparse.number(), off_t{1} << 30U), 0);
  ASSERT_EQ(fcntl(sparse.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(share(connect(), sparse.number()).empty()) << "accepted memory of another size";
  struct stat status {};
  ASSERT_EQ(fstat(sparse.number(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0) << "the ps touched the memory";

  const data::FileDescriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.number(), static_cast<off_t>(offered())), 0);
  EXPECT_TRUE(share(connect(), unsealed.number()).empty()) << "accepted memory that can shrink";
  ASSERT_EQ(fcntl(unsealed.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(share(connect(), unsealed.number()).empty()) << "sealed memory must be accepted";
}

TEST_F(Impostor, HandsNothingOverAndSaysThatItHas) {
  start_run();
  std::error_code error;
  const auto memory = net::SharedMemory::create(offered(), error);
  ASSERT_TRUE(memory) << error.message();
  EXPECT_TRUE(share(connect(), -1).empty());
  EXPECT_TRUE(share(connect(), memory->descriptor(), 1).empty()) << "accepted another token";
  const RawPeer peer = connect();
  Bytes body;
  const auto taken = net::encode(net::SharedOffer{.token = 1, .size = offered()});
  EXPECT_EQ(reply_to(peer, frame({.kind = FrameKind::kShare}, taken), body), FrameKind::kShared);
  EXPECT_TRUE(body.empty()) << "accepted memory without an offer";
  EXPECT_FALSE(share(peer, memory->descriptor()).empty()) << "the connection must stay open";
}

TEST_F(Impostor, LeavesWhatIsNoRequestWhereRequestsAreLeft) {
  start_run();
  expect_closed({.kind = FrameKind::kShutdown});
  expect_closed({.kind = FrameKind::kPushPull, .generation = 1});
  expect_closed({.kind = FrameKind::kPushPull,
                 .flags = net::kFlagInPlace,
                 .body_size = std::uint64_t{1} << 40U,
                 .generation = 1});
  const net::FrameHeader push{.kind = FrameKind::kPushPull,
                              .flags = net::kFlagInPlace,
                              .body_size = size_ * sizeof(float),
                              .generation = 1};
  expect_closed(push, 1);
  expect_closed({.kind = FrameKind::kPull}, 0, net::kHeadersInMailbox + 1);
}

TEST_F(Impostor, PushesInMemoryThatIsNotShared) {
  start_run();
  const RawPeer peer = connect();
  peer.write(
      frame({.kind = FrameKind::kPushPull, .flags = net::kFlagInPlace, .generation = 1}, {}));
  bool timed_out = false;
  const Bytes answer = peer.read_to_end(std::chrono::seconds(20), timed_out);
  EXPECT_FALSE(timed_out);
  EXPECT_FALSE(refusal_in(answer)) << "the ps must close without a refusal";
  expect_parameters_unchanged();
}

}  // namespace
}  // namespace disttf::test_process
