#include "tests/process/scripted_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process/process.h"

namespace disttf::test_process {

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
