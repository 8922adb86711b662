#include "tests/process/raw_peer.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "tests/process/process.h"
#include "tests/support/loopback.h"

namespace disttf::test_process {

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes frame(net::FrameHeader header, std::span<const std::byte> body) {
  header.body_size = body.size();
  Bytes bytes(net::kHeaderBytes + body.size());
  net::encode_header(header, std::span(bytes).first<net::kHeaderBytes>());
  std::copy(body.begin(), body.end(), bytes.begin() + net::kHeaderBytes);
  return bytes;
}

Bytes hello_frame(const net::Hello& hello) {
  return frame({.kind = net::FrameKind::kHello, .request_id = 1}, net::encode(hello));
}

RawPeer::RawPeer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = test_support::loopback(port);
  if (!socket_.is_open() ||
      connect(socket_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot connect to port " + std::to_string(port));
  }
}

void RawPeer::write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

Bytes RawPeer::read_to_end(std::chrono::milliseconds limit, bool& timed_out) const {
  Bytes bytes;
  std::array<std::byte, 4096> buffer{};
  pollfd wait{.fd = socket_.number(), .events = POLLIN, .revents = 0};
  while (true) {
    timed_out = poll(&wait, 1, static_cast<int>(limit.count())) == 0;
    const ssize_t count = timed_out ? 0 : recv(socket_.number(), buffer.data(), buffer.size(), 0);
    if (count <= 0) {
      return bytes;
    }
    bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + count);
  }
}

bool RawPeer::read_exactly(std::span<std::byte> bytes, std::chrono::milliseconds limit) const {
  pollfd wait{.fd = socket_.number(), .events = POLLIN, .revents = 0};
  while (!bytes.empty()) {
    if (poll(&wait, 1, static_cast<int>(limit.count())) <= 0) {
      return false;
    }
    const ssize_t count = recv(socket_.number(), bytes.data(), bytes.size(), 0);
    if (count <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool RawPeer::read_frame(net::FrameHeader& header, Bytes& body,
                         std::chrono::milliseconds limit) const {
  std::array<std::byte, net::kHeaderBytes> bytes{};
  if (!read_exactly(bytes, limit) || net::decode_header(bytes, header)) {
    return false;
  }
  body.resize(header.body_size);
  return read_exactly(body, limit);
}

std::optional<net::Refusal> refusal_in(std::span<const std::byte> bytes) {
  while (bytes.size() >= net::kHeaderBytes) {
    net::FrameHeader header;
    if (net::decode_header(bytes.first<net::kHeaderBytes>(), header)) {
      return std::nullopt;
    }
    bytes = bytes.subspan(net::kHeaderBytes);
    const auto body = bytes.first(std::min<std::size_t>(bytes.size(), header.body_size));
    net::Refusal refusal;
    if (header.kind == net::FrameKind::kRefused && !net::decode(body, refusal)) {
      return refusal;
    }
    bytes = bytes.subspan(body.size());
  }
  return std::nullopt;
}

using net::FrameHeader;
using net::FrameKind;
using net::Job;

RawPeer say_hello(const ClusterOnLoopback& cluster, const ScriptedHello& hello) {
  RawPeer peer(cluster.tasks().ps.at(hello.ps).port);
  peer.write(hello_frame({.cluster = net::hash_of(cluster.tasks()),
                          .from = {.job = Job::kWorker, .index = hello.worker},
                          .to = {.job = Job::kPs, .index = hello.ps},
                          .purpose = hello.purpose,
                          .incarnation = hello.incarnation}));
  return peer;
}

RawPeer welcomed(const ClusterOnLoopback& cluster, const ScriptedHello& hello,
                 net::Welcome* welcome) {
  RawPeer peer = say_hello(cluster, hello);
  Bytes body;
  EXPECT_EQ(next_frame(peer, body).kind, FrameKind::kWelcome);
  if (welcome != nullptr) {
    EXPECT_FALSE(net::decode(body, *welcome));
  }
  return peer;
}

FrameHeader next_frame(const RawPeer& peer, Bytes& body) {
  FrameHeader header;
  do {
    if (!peer.read_frame(header, body, kPatience)) {
      ADD_FAILURE() << "the ps closed the connection, or sent nothing";
      return {};
    }
  } while (header.kind == FrameKind::kHeartbeat);
  return header;
}

FrameKind reply_to(const RawPeer& peer, const Bytes& request, Bytes& body) {
  peer.write(request);
  return next_frame(peer, body).kind;
}

void expect_ack(const RawPeer& peer, const Bytes& request) {
  Bytes body;
  EXPECT_EQ(reply_to(peer, request, body), FrameKind::kAck);
}

void expect_refused(const RawPeer& peer, const Bytes& request, const std::string& sentence) {
  peer.write(request);
  bool timed_out = false;
  const auto refusal = refusal_in(peer.read_to_end(kPatience, timed_out));
  EXPECT_FALSE(timed_out) << "the ps kept the connection";
  ASSERT_TRUE(refusal.has_value());
  EXPECT_THAT(refusal->sentence, ::testing::HasSubstr(sentence));
}

}  // namespace disttf::test_process
