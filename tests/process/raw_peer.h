// A connection that sends only what the test writes: for hostile frames.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "tests/process/cluster_on_loopback.h"

namespace disttf::test_process {

using Bytes = std::vector<std::byte>;

[[nodiscard]] Bytes bytes_of(std::string_view text);
// Returns a complete frame; sets body_size to the size of `body`.
[[nodiscard]] Bytes frame(net::FrameHeader header, std::span<const std::byte> body = {});
[[nodiscard]] Bytes hello_frame(const net::Hello& hello);

class RawPeer {
 public:
  // Connects to 127.0.0.1. Throws std::system_error.
  explicit RawPeer(std::uint16_t port);
  // Ignores the error if the peer has already closed the connection.
  void write(std::span<const std::byte> bytes) const;
  // Reads until the peer closes, or until no data arrives for `limit`: then sets `timed_out`.
  [[nodiscard]] Bytes read_to_end(std::chrono::milliseconds limit, bool& timed_out) const;
  // Reads the next frame's header, and its body into `body`. Returns false if closed, or after
  // `limit`.
  [[nodiscard]] bool read_frame(net::FrameHeader& header, Bytes& body,
                                std::chrono::milliseconds limit) const;

 private:
  [[nodiscard]] bool read_exactly(std::span<std::byte> bytes,
                                  std::chrono::milliseconds limit) const;
  data::FileDescriptor socket_;
};

// Returns the first REFUSED among these frames.
[[nodiscard]] std::optional<net::Refusal> refusal_in(std::span<const std::byte> bytes);

// A trainer that the test plays, frame by frame: it follows the protocol and knows the cluster.
struct ScriptedHello {
  std::size_t worker = 0;
  net::ChannelPurpose purpose = net::ChannelPurpose::kStep;
  std::uint64_t incarnation = 77;
  std::size_t ps = 0;
};

// Connects to that ps of the cluster and sends HELLO; does not read the answer.
[[nodiscard]] RawPeer say_hello(const ClusterOnLoopback& cluster, const ScriptedHello& hello = {});
// Connects and reads a WELCOME: anything else fails the test.
[[nodiscard]] RawPeer welcomed(const ClusterOnLoopback& cluster, const ScriptedHello& hello = {},
                               net::Welcome* welcome = nullptr);

// Returns the next frame that is not a heartbeat; fails if there is none.
[[nodiscard]] net::FrameHeader next_frame(const RawPeer& peer, Bytes& body);
// Sends a request, and returns the kind of the answer.
net::FrameKind reply_to(const RawPeer& peer, const Bytes& request, Bytes& body);
void expect_ack(const RawPeer& peer, const Bytes& request);
// Expects that the connection is refused with a message that contains `sentence`.
void expect_refused(const RawPeer& peer, const Bytes& request, const std::string& sentence);

}  // namespace disttf::test_process
