// A trainer that the test plays, frame by frame: it follows the protocol and knows the cluster.
#pragma once

#include <cstdint>
#include <string>

#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "tests/process/cluster_on_loopback.h"
#include "tests/process/raw_peer.h"

namespace disttf::test_process {

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
