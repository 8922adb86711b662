// A leader and members of a host group; the test controls the behaviour of some of them.
#pragma once

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "net/memory/host_group.h"

namespace disttf::net::group_test {

inline constexpr std::size_t kVector = 1000;          // bytes, not a multiple of cache lines
inline constexpr std::size_t kWords = 1024;           // where the words begin after it
inline constexpr Deadline kNow = Deadline::min();     // only looks at what has arrived
inline constexpr auto kLong = std::chrono::hours(1);  // longer than any test may take
inline constexpr StateOf kFirst{.generation = 1UL << 12U, .step = 7};
inline constexpr StateOf kSecond{.generation = 1UL << 12U, .step = 8};
inline constexpr StateOf kReset{.generation = (1UL << 12U) + 1, .step = 3};

using Bytes = std::vector<std::byte>;

inline Bytes vector_of(std::uint64_t seed, std::size_t bytes = kVector) {
  Bytes made(bytes);
  for (std::byte& each : made) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    each = static_cast<std::byte>(seed >> 56U);
  }
  return made;
}

inline bool is_equal(std::span<const std::byte> one, const Bytes& other) {
  return std::ranges::equal(one, other);
}

inline std::size_t descriptors_of_process() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// The values on the socket.
enum Says : std::uint64_t { kSaysHello = 1, kSaysOffer, kSaysVerdict, kSaysParameters };
struct Words {
  std::uint64_t says;
  StateOf of{};
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;
};

inline bool sends(const Descriptor& peer, const Words& words, std::size_t bytes = sizeof(Words)) {
  std::array<char, 2 * sizeof(Words)> message{};
  std::memcpy(message.data(), &words, sizeof words);
  return send(peer.number(), message.data(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes);
}

// Returns whether the other end has closed the socket. Reads what arrived before.
inline bool is_closed(const Descriptor& peer) {
  std::array<char, 100> message{};
  ssize_t received = 0;
  do {
    received = recv(peer.number(), message.data(), message.size(), MSG_DONTWAIT);
  } while (received > 0);
  return received == 0 || errno != EAGAIN;
}

// Returns whether the other end has read everything that was sent.
inline bool has_been_read(const Descriptor& peer) {
  int unread = -1;
  return ioctl(peer.number(), SIOCOUTQ, &unread) == 0 && unread == 0;
}

// A member whose behaviour the test controls.
struct RawMember {
  Descriptor peer;
  std::unique_ptr<SharedMemory> memory;

  void set_ticket(std::uint64_t ticket) const {
    std::memcpy(memory->bytes().subspan(kWords).data(), &ticket, sizeof ticket);
  }
};

class HostGroupTest : public testing::Test {
 protected:
  void open(std::size_t members) {
    std::error_code error;
    leader_ = GroupLeader::open(kVector, members, error);
    ASSERT_TRUE(leader_) << error.message();
  }
  [[nodiscard]] std::unique_ptr<GroupMember> join_leader(std::size_t number = 0) const {
    std::error_code error;
    auto member = GroupMember::connect(leader_->leader_address(), kVector, number, error);
    EXPECT_TRUE(member) << error.message();
    return member;
  }
  // Opens a group with one accepted member.
  std::unique_ptr<GroupMember> open_with_a_member() {
    open(1);
    auto member = join_leader();
    EXPECT_FALSE(gathers(kFirst));
    EXPECT_TRUE(member->is_taken_in());
    return member;
  }
  // Hands memory over without a HELLO.
  [[nodiscard]] RawMember raw() const {
    std::error_code error;
    RawMember made{
        .peer = net::connect_to_peer_listener(leader_->leader_address().listener_name, error),
        .memory = SharedMemory::create(kWords + 64, error)};
    EXPECT_FALSE(hand_over(made.peer, leader_->leader_address().token, made.memory->descriptor()));
    return made;
  }
  [[nodiscard]] RawMember raw_member(std::size_t number = 0) {
    RawMember made = raw();
    EXPECT_TRUE(sends(made.peer, {.says = kSaysHello, .number = number}));
    EXPECT_FALSE(gathers(kFirst));
    return made;
  }

  [[nodiscard]] bool gathers(const StateOf& of, Deadline deadline = kNow) {
    return leader_->gather(of, interrupt_, deadline);
  }
  [[nodiscard]] std::optional<GroupVerdict> offers(GroupMember& member, const StateOf& of,
                                                   Deadline deadline = kNow) const {
    return member.offer(of, vector_of(of.step), interrupt_, deadline);
  }
  [[nodiscard]] bool takes(GroupMember& member, std::size_t range, const StateOf& of,
                           Deadline deadline = kNow) const {
    Bytes into(kVector);
    return member.take({.range = range, .of = of}, 0, into, interrupt_, deadline) &&
           is_equal(into, vector_of(of.step + range));
  }
  void publish(std::size_t range, const StateOf& of) const {
    leader_->publish({.range = range, .of = of}, 0, vector_of(of.step + range));
  }
  static Deadline later() { return Clock::now() + kLong; }

  Interrupt interrupt_;
  std::unique_ptr<GroupLeader> leader_;
};

}  // namespace disttf::net::group_test
