// Which peers the trainers of a host group accept, and which they refuse.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "net/memory/host_group.h"
#include "tests/net/host_group_fixture.h"

namespace disttf::net::group_test {
namespace {

class HostGroupPeersTest : public HostGroupTest {};

// -------------------------------------------------------------------------------------- admission

TEST_F(HostGroupPeersTest, NoConnectionIsMadeWithoutALeader) {
  open(1);
  const LeaderAddress gone = leader_->leader_address();
  leader_.reset();
  std::error_code error;
  EXPECT_FALSE(GroupMember::connect(gone, kVector, 0, error));
  EXPECT_EQ(error, std::errc::connection_refused);
}

TEST_F(HostGroupPeersTest, TheNewestMemberOfANumberTakesItsPlace) {
  const auto older = open_with_a_member();
  const auto old = join_leader();
  const auto newest = join_leader();
  EXPECT_FALSE(gathers(kFirst, later()));
  EXPECT_EQ(leader_->present(), 1U);
  EXPECT_FALSE(older->look());
  EXPECT_FALSE(old->is_taken_in());
  EXPECT_TRUE(newest->is_taken_in());
  std::thread offering([this, &newest] { EXPECT_TRUE(offers(*newest, kSecond, later())); });
  EXPECT_TRUE(gathers(kSecond, later()));
  EXPECT_TRUE(is_equal(leader_->gradient(0), vector_of(kSecond.step)));
  leader_->tell({.of = kSecond});
  offering.join();
}

TEST_F(HostGroupPeersTest, WhatTheOldMemberOfANumberOfferedIsForgotten) {
  open(1);
  const RawMember old = raw_member();
  ASSERT_TRUE(sends(old.peer, {.says = kSaysOffer, .of = kSecond}));
  EXPECT_FALSE(gathers(kFirst, later()));
  const RawMember newest = raw_member();
  EXPECT_FALSE(gathers(kSecond));
  EXPECT_EQ(leader_->present(), 1U);
}

TEST_F(HostGroupPeersTest, WhoSaysItsNumberLaterIsTakenInThen) {
  open(1);
  const RawMember member = raw();
  EXPECT_FALSE(gathers(kFirst));
  EXPECT_EQ(leader_->present(), 0U);
  ASSERT_TRUE(sends(member.peer, {.says = kSaysHello, .number = 0}));
  EXPECT_FALSE(gathers(kFirst));
  EXPECT_EQ(leader_->present(), 1U);
}

TEST_F(HostGroupPeersTest, WhoDoesNotSayItsNumberGivesWay) {
  open(1);
  std::vector<RawMember> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(raw());
    EXPECT_FALSE(gathers(kFirst));
  }
  EXPECT_TRUE(is_closed(silent[0].peer));
  EXPECT_TRUE(is_closed(silent[1].peer));
  EXPECT_FALSE(is_closed(silent[2].peer));
  const auto member = join_leader();
  EXPECT_FALSE(gathers(kFirst));
  EXPECT_TRUE(member->is_taken_in());
}

TEST_F(HostGroupPeersTest, WhoIsNoMemberIsRefused) {
  open(1);
  const LeaderAddress right = leader_->leader_address();
  const auto is_refused = [this](const LeaderAddress& leader, std::size_t bytes,
                                 std::size_t number) {
    const std::size_t before = descriptors_of_process();
    std::error_code error;
    const auto member = GroupMember::connect(leader, bytes, number, error);
    EXPECT_TRUE(member) << error.message();
    EXPECT_FALSE(gathers(kFirst));
    EXPECT_EQ(leader_->present(), 0U);
    EXPECT_EQ(descriptors_of_process(), before + 2) << "the member's socket and memory";
    return !member->is_taken_in() && !member->is_open();
  };
  EXPECT_TRUE(
      is_refused({.listener_name = right.listener_name, .token = right.token + 1}, kVector, 0));
  EXPECT_TRUE(is_refused(right, kVector + 64, 0));
  EXPECT_TRUE(is_refused(right, kVector - 64, 0));
  EXPECT_TRUE(is_refused(right, kVector, 1));
}

TEST_F(HostGroupPeersTest, MemoryThatCanShrinkIsRefused) {
  open(1);
  std::error_code error;
  const Descriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.number(), kWords + 64), 0);
  const Descriptor peer =
      net::connect_to_peer_listener(leader_->leader_address().listener_name, error);
  ASSERT_FALSE(hand_over(peer, leader_->leader_address().token, unsealed.number()));
  ASSERT_TRUE(sends(peer, {.says = kSaysHello}));
  EXPECT_FALSE(gathers(kFirst));
  EXPECT_EQ(leader_->present(), 0U);
  EXPECT_TRUE(is_closed(peer));
}

TEST_F(HostGroupPeersTest, ALeaderWithOtherMemoryIsLeft) {
  std::error_code error;
  const auto peer_listener = PeerListener::open(error);
  ASSERT_TRUE(peer_listener) << error.message();
  const auto is_left = [&](std::uint64_t token, std::size_t bytes) {
    const auto member = GroupMember::connect({peer_listener->name(), 5}, kVector, 0, error);
    const auto handed = peer_listener->admit(5);
    EXPECT_TRUE(handed);
    const auto memory = SharedMemory::create(bytes, error);
    EXPECT_FALSE(hand_over(handed->peer, token, memory->descriptor()));
    return !member->is_taken_in() && !member->is_open();
  };
  constexpr std::size_t kRight = kWords + kMostSummedRanges * 64;
  EXPECT_FALSE(is_left(5, kRight));
  EXPECT_TRUE(is_left(6, kRight));
  EXPECT_TRUE(is_left(5, kRight + 64));
  EXPECT_TRUE(is_left(5, kRight - 64));
}

TEST_F(HostGroupPeersTest, NoDescriptorIsLeftOpen) {
  const std::size_t before = descriptors_of_process();
  {
    const auto member = open_with_a_member();
    const auto next = join_leader();
    const RawMember silent = raw();
    EXPECT_FALSE(gathers(kFirst));
    EXPECT_TRUE(next->is_taken_in());
    leader_.reset();
  }
  EXPECT_EQ(descriptors_of_process(), before);
}

// ------------------------------------------------------------------------------ invalid messages

TEST_F(HostGroupPeersTest, AMemberThatMakesNoSenseIsClosed) {
  open(1);
  const auto is_closed_after = [this](const Words& words, std::size_t bytes = sizeof(Words)) {
    const RawMember member = raw_member();
    EXPECT_EQ(leader_->present(), 1U);
    EXPECT_TRUE(sends(member.peer, words, bytes));
    const bool has_gathered = gathers(kFirst);
    EXPECT_EQ(has_gathered, leader_->present() == 1);
    return !has_gathered && is_closed(member.peer);
  };
  const Words right{.says = kSaysOffer, .of = kFirst, .sequence = 2};
  EXPECT_FALSE(is_closed_after(right));
  for (const std::size_t bytes : {std::size_t{0}, sizeof(Words) - 1, sizeof(Words) + 1}) {
    EXPECT_TRUE(is_closed_after(right, bytes)) << bytes;
  }
  for (const std::uint64_t says : {0UL, 1UL, 3UL, 4UL, 5UL, (1UL << 32U) + kSaysOffer}) {
    EXPECT_TRUE(is_closed_after({.says = says, .of = kFirst, .sequence = 2})) << says;
  }
  EXPECT_TRUE(is_closed_after({.says = kSaysOffer, .of = kFirst, .sequence = 3}));
}

TEST_F(HostGroupPeersTest, ANewcomerThatMakesNoSenseIsClosed) {
  open(1);
  const auto is_closed_after = [this](const Words& words, std::size_t bytes = sizeof(Words)) {
    const RawMember newcomer = raw();
    EXPECT_TRUE(sends(newcomer.peer, words, bytes));
    EXPECT_FALSE(gathers(kFirst));
    EXPECT_EQ(leader_->present(), 0U);
    return is_closed(newcomer.peer);
  };
  EXPECT_TRUE(is_closed_after({.says = kSaysOffer}));
  EXPECT_TRUE(is_closed_after({.says = kSaysHello, .number = 1}));
  EXPECT_TRUE(is_closed_after({.says = kSaysHello, .number = ~0UL}));
  EXPECT_TRUE(is_closed_after({.says = kSaysHello}, sizeof(Words) - 1));
  EXPECT_TRUE(is_closed_after({.says = kSaysHello}, sizeof(Words) + 1));
}

// The test controls the leader's behaviour.
class HostGroupMemberTest : public HostGroupTest {
 protected:
  void SetUp() override {
    std::error_code error;
    const auto peer_listener = PeerListener::open(error);
    ASSERT_TRUE(peer_listener) << error.message();
    member_ = GroupMember::connect({peer_listener->name(), 5}, kVector, 0, error);
    ASSERT_TRUE(member_) << error.message();
    auto handed = peer_listener->admit(5);
    ASSERT_TRUE(handed);
    peer_ = std::move(handed->peer);
    memory_ = SharedMemory::create(kWords + kMostSummedRanges * 64, error);
    ASSERT_FALSE(hand_over(peer_, 5, memory_->descriptor()));
    ASSERT_TRUE(member_->is_taken_in());
    Words hello{};
    ASSERT_EQ(recv(peer_.number(), &hello, sizeof hello, MSG_DONTWAIT), sizeof hello);
  }

  std::unique_ptr<GroupMember> member_;
  Descriptor peer_;
  std::unique_ptr<SharedMemory> memory_;
};

TEST_F(HostGroupMemberTest, ALeaderThatMakesNoSenseIsLeft) {
  const auto is_left_after = [this](const Words& words, std::size_t bytes = sizeof(Words)) {
    SetUp();
    EXPECT_TRUE(sends(peer_, words, bytes));
    const bool stays = member_->look();
    EXPECT_EQ(stays, member_->is_open());
    return !stays;
  };
  const Words verdict{.says = kSaysVerdict, .of = kFirst, .number = ~0UL};
  EXPECT_FALSE(is_left_after(verdict));
  EXPECT_FALSE(is_left_after({.says = kSaysParameters, .of = kFirst, .number = 63, .sequence = 2}));
  for (const std::size_t bytes : {std::size_t{0}, sizeof(Words) - 1, sizeof(Words) + 1}) {
    EXPECT_TRUE(is_left_after(verdict, bytes)) << bytes;
  }
  for (const std::uint64_t says : {0UL, 1UL, 2UL, 7UL}) {
    EXPECT_TRUE(is_left_after({.says = says, .of = kFirst})) << says;
  }
  EXPECT_TRUE(is_left_after({.says = kSaysParameters, .of = kFirst, .number = 64, .sequence = 2}));
  EXPECT_TRUE(is_left_after({.says = kSaysParameters, .of = kFirst, .number = 0, .sequence = 3}));
}

TEST_F(HostGroupMemberTest, ParametersAreNotTakenWhileTheyAreWritten) {
  constexpr std::uint64_t kWritten = 3;
  ASSERT_TRUE(sends(peer_, {.says = kSaysParameters, .of = kFirst, .number = 1, .sequence = 2}));
  std::memcpy(memory_->bytes().subspan(kWords + 64).data(), &kWritten, sizeof kWritten);
  Bytes into(kVector);
  EXPECT_FALSE(member_->take({.range = 1, .of = kFirst}, 0, into, interrupt_, later()));
  EXPECT_FALSE(member_->is_open());
}

TEST_F(HostGroupMemberTest, WhoHasBeenToldOffersNothing) {
  ASSERT_TRUE(sends(peer_, {.says = kSaysVerdict, .of = kFirst}));
  EXPECT_TRUE(offers(*member_, kFirst));
  char byte = 0;
  EXPECT_EQ(recv(peer_.number(), &byte, sizeof byte, MSG_DONTWAIT), -1) << "nothing was said";
  EXPECT_EQ(errno, EAGAIN);
}

// Sends more than the receiver reads between two looks at the clock.
bool floods(const Descriptor& peer, const Words& words) {
  constexpr int kRoom = 1 << 20U;
  constexpr int kMany = 2 * 256;
  static_cast<void>(
      setsockopt(peer.number(), SOL_SOCKET, SO_SNDBUF, &kRoom, sizeof kRoom));  // or less
  int sent = 0;
  while (sends(peer, words)) {
    ++sent;
  }
  return sent > kMany;
}

TEST_F(HostGroupMemberTest, AFloodDoesNotKeepItPastTheDeadline) {
  if (!floods(peer_, {.says = kSaysVerdict, .of = kFirst})) {
    GTEST_SKIP() << "sockets have no room for that";
  }
  EXPECT_FALSE(offers(*member_, kSecond));
  EXPECT_FALSE(member_->is_open());
  char byte = 0;
  EXPECT_EQ(recv(peer_.number(), &byte, sizeof byte, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, ECONNRESET) << "the receiver stopped reading";
}

TEST_F(HostGroupMemberTest, AFloodDoesNotKeepItPastTheInterrupt) {
  if (!floods(peer_, {.says = kSaysVerdict, .of = kFirst})) {
    GTEST_SKIP() << "sockets have no room for that";
  }
  interrupt_.interrupt();
  EXPECT_FALSE(offers(*member_, kSecond, later()));
  char byte = 0;
  EXPECT_EQ(recv(peer_.number(), &byte, sizeof byte, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, ECONNRESET) << "the receiver stopped reading";
}

TEST_F(HostGroupPeersTest, AFloodDoesNotKeepTheLeaderPastTheDeadlineNorTheInterrupt) {
  open(1);
  const RawMember member = raw_member();
  leader_->tell({.of = kFirst});
  const Words late{.says = kSaysOffer, .of = kFirst};
  if (!floods(member.peer, late)) {
    GTEST_SKIP() << "sockets have no room for that";
  }
  EXPECT_FALSE(gathers(kSecond));
  EXPECT_FALSE(has_been_read(member.peer));
  static_cast<void>(floods(member.peer, late));
  interrupt_.interrupt();
  EXPECT_FALSE(gathers(kSecond, later()));
  EXPECT_FALSE(has_been_read(member.peer));
  EXPECT_EQ(leader_->present(), 1U);
}

}  // namespace
}  // namespace disttf::net::group_test
