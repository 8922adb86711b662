// A trainer that the test plays, frame by frame: it speaks the protocol and knows the cluster.
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
};

// To ps 0 of the cluster; says HELLO and leaves the answer to be read.
[[nodiscard]] RawPeer say_hello(const ClusterOnLoopback& cluster, const ScriptedHello& hello = {});
// The same, and has been welcomed: anything else is a failure of the test.
[[nodiscard]] RawPeer welcomed(const ClusterOnLoopback& cluster, const ScriptedHello& hello = {},
                               net::Welcome* welcome = nullptr);

// The next frame that is no heartbeat; a failure when there is none.
[[nodiscard]] net::FrameHeader next_frame(const RawPeer& peer, Bytes& body);
// Sends a request, and returns the kind of what comes back.
net::FrameKind reply_to(const RawPeer& peer, const Bytes& request, Bytes& body);
void expect_ack(const RawPeer& peer, const Bytes& request);
// The connection is refused with a sentence in which this is found.
void expect_refused(const RawPeer& peer, const Bytes& request, const std::string& sentence);

}  // namespace disttf::test_process
