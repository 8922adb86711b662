// Which process receives a descriptor over a peer listener, and whose descriptor is accepted.
#include "net/memory/handover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace disttf::net {
namespace {

constexpr std::uint64_t kToken = 0x0023456789ABCDEF;  // its last byte is 0, like a missing one

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

bool is_same_file(int one, int other) {
  struct stat first {};
  struct stat second {};
  return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// Returns what `act` returns in a process of its own.
int in_a_child(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(act());
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class HandoverTest : public testing::Test {
 protected:
  void SetUp() override {
    std::error_code error;
    peer_listener_ = PeerListener::open(error);
    ASSERT_TRUE(peer_listener_) << error.message();
    what_ = Descriptor(memfd_create("what", MFD_CLOEXEC));
    ASSERT_TRUE(what_.is_open());
  }
  [[nodiscard]] Descriptor connect() const {
    std::error_code error;
    Descriptor peer = connect_to_peer_listener(peer_listener_->name(), error);
    EXPECT_FALSE(error) << error.message();
    return peer;
  }
  // Sends one message with descriptors.
  static void say(const Descriptor& peer, const std::string& words, const std::vector<int>& with) {
    std::string text = words;
    iovec said{.iov_base = text.data(), .iov_len = text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &said;
    message.msg_iovlen = 1;
    if (!with.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(with.size() * sizeof(int));
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(with.size() * sizeof(int));
      std::memcpy(CMSG_DATA(head), with.data(), with.size() * sizeof(int));
    }
    ASSERT_EQ(sendmsg(peer.number(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  }
  static std::string token_bytes(std::uint64_t token = kToken) {
    return {reinterpret_cast<const char*>(&token), sizeof token};
  }

  std::unique_ptr<PeerListener> peer_listener_;
  Descriptor what_;
};

TEST_F(HandoverTest, GoesBothWays) {
  const Descriptor ps = connect();
  ASSERT_FALSE(hand_over(ps, kToken, what_.number()));
  const auto handed = peer_listener_->admit(kToken);
  ASSERT_TRUE(handed);
  EXPECT_TRUE(is_same_file(handed->what.number(), what_.number()));
  EXPECT_NE(fcntl(handed->what.number(), F_GETFD) & FD_CLOEXEC, 0);
  const Descriptor back(memfd_create("back", MFD_CLOEXEC));
  ASSERT_FALSE(hand_over(handed->peer, 5, back.number()));
  EXPECT_TRUE(is_same_file(take_over(ps, 5).number(), back.number()));
}

TEST_F(HandoverTest, IsFromOneProcessToAnother) {
  const int done = in_a_child([this] {
    std::error_code error;
    const Descriptor ps = connect_to_peer_listener(peer_listener_->name(), error);
    return !error && !hand_over(ps, kToken, what_.number()) ? 0 : 1;
  });
  ASSERT_EQ(done, 0);
  const auto handed = peer_listener_->admit(kToken);
  ASSERT_TRUE(handed) << "although its sender has ended";
  EXPECT_TRUE(is_same_file(handed->what.number(), what_.number()));
}

TEST_F(HandoverTest, AdmitDoesNotBlock) { EXPECT_FALSE(peer_listener_->admit(kToken)); }

TEST_F(HandoverTest, AnUnauthenticatedPeerGetsNothingAndIsClosed) {
  const Descriptor outsider = connect();
  EXPECT_FALSE(peer_listener_->admit(kToken));
  char byte = 0;
  EXPECT_EQ(recv(outsider.number(), &byte, 1, 0), 0) << "closed";
}

TEST_F(HandoverTest, AWrongTokenIsRefused) {
  const Descriptor outsider = connect();
  ASSERT_FALSE(hand_over(outsider, kToken + 1, what_.number()));
  EXPECT_FALSE(peer_listener_->admit(kToken));
  char byte = 0;
  EXPECT_EQ(recv(outsider.number(), &byte, 1, 0), 0) << "closed";
}

TEST_F(HandoverTest, AWrongTokenIsRefusedTheOtherWayToo) {
  const Descriptor ps = connect();
  ASSERT_FALSE(hand_over(ps, kToken, what_.number()));
  const auto handed = peer_listener_->admit(kToken);
  ASSERT_TRUE(handed);
  EXPECT_FALSE(take_over(ps, 5).is_open()) << "nothing has arrived";
  ASSERT_FALSE(hand_over(handed->peer, 6, what_.number()));
  EXPECT_FALSE(take_over(ps, 5).is_open());
}

TEST_F(HandoverTest, UnauthenticatedPeersBeforeItDoNotKeepThePsAway) {
  std::vector<Descriptor> outsiders;
  for (int i = 0; i < 10; ++i) {
    outsiders.push_back(connect());
    say(outsiders.back(), "hello", {});
  }
  const Descriptor ps = connect();
  ASSERT_FALSE(hand_over(ps, kToken, what_.number()));
  EXPECT_TRUE(peer_listener_->admit(kToken));
}

TEST_F(HandoverTest, MoreUnauthenticatedPeersThanThereIsRoomForOnlyKeepThePsAway) {
  std::vector<Descriptor> outsiders;
  std::error_code error;
  while (!error && outsiders.size() < 1000) {
    outsiders.push_back(connect_to_peer_listener(peer_listener_->name(), error));
  }
  EXPECT_EQ(error, std::errc::resource_unavailable_try_again);
  EXPECT_FALSE(peer_listener_->admit(kToken));
}

TEST_F(HandoverTest, WhatIsNoTokenWithOneDescriptorIsRefusedAndNoneIsLeftOpen) {
  const int what = what_.number();
  const std::vector<std::pair<std::string, std::vector<int>>> said = {
      {token_bytes(), {}},
      {token_bytes(), {what, what}},
      {token_bytes(), {what, what, what}},
      {token_bytes() + "x", {what}},
      {token_bytes().substr(0, 7), {what}},
      {token_bytes(kToken + 1), {what}}};
  for (std::size_t i = 0; i < said.size(); ++i) {
    const Descriptor peer = connect();
    say(peer, said[i].first, said[i].second);
    const std::size_t before = open_descriptors();
    EXPECT_FALSE(peer_listener_->admit(kToken)) << i;
    EXPECT_EQ(open_descriptors(), before) << i;
  }
}

TEST_F(HandoverTest, ANameWithoutAListenerLeadsNowhere) {
  const std::uint64_t name = peer_listener_->name();
  peer_listener_.reset();
  std::error_code error;
  EXPECT_FALSE(connect_to_peer_listener(name, error).is_open());
  EXPECT_EQ(error, std::errc::connection_refused);
}

TEST_F(HandoverTest, NamesAndTokensDiffer) {
  std::error_code error;
  const auto other = PeerListener::open(error);
  ASSERT_TRUE(other) << error.message();
  EXPECT_NE(other->name(), peer_listener_->name());
  EXPECT_NE(draw_token(), draw_token());
}

class HandoverToAnotherUser : public HandoverTest {
 protected:
  static constexpr uid_t kOther = 65'534;
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "only root can be another user";
    }
    HandoverTest::SetUp();
  }
};

TEST_F(HandoverToAnotherUser, IsRefusedByTheOneWhoListens) {
  const int done = in_a_child([this] {
    if (setresuid(kOther, kOther, kOther) != 0) {
      return 2;
    }
    // connect_to_peer_listener() refuses this, see below.
    const Descriptor peer(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    socklen_t size = sizeof address;
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx",
                  static_cast<unsigned long long>(peer_listener_->name()));
    const std::string path = std::string("\0disttf-", 8) + digits.data();
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    if (::connect(peer.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      return 1;
    }
    return hand_over(peer, kToken, what_.number()) ? 1 : 0;
  });
  ASSERT_EQ(done, 0);
  EXPECT_FALSE(peer_listener_->admit(kToken)) << "with the right token";
}

TEST_F(HandoverToAnotherUser, IsRefusedByTheOneWhoConnects) {
  const int refused = in_a_child([this] {
    if (setresuid(kOther, kOther, kOther) != 0) {
      return 2;
    }
    std::error_code error;
    const Descriptor peer = connect_to_peer_listener(peer_listener_->name(), error);
    return !peer.is_open() && error == std::errc::permission_denied ? 0 : 1;
  });
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace disttf::net
