// What the tests of roles/ps/core/range_replica.h share: a small run, and hosts of its range.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "math/model.h"
#include "tests/roles/replica_host.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {

class RangeReplicaTest : public testing::Test {
 protected:
  // Publishes, and restores zeros at this step.
  void begin_run(ReplicaHost& host, ConnectionId chief, const RunConfig& config,
                 std::uint64_t step = 0, net::Generation generation = 1) {
    const std::string published = to_json(config);
    ASSERT_TRUE(
        host.say(chief, {.kind = net::FrameKind::kPublish}, std::as_bytes(std::span(published))));
    expect(host, chief, net::FrameKind::kAck);
    ASSERT_TRUE(host.say(chief,
                         {.kind = net::FrameKind::kRestore, .step = step, .generation = generation},
                         Bytes(host.core.state().shard()->range().size() * sizeof(float))));
    expect(host, chief, net::FrameKind::kAck);
  }
  [[nodiscard]] Bytes gradient(float value) const {
    const std::vector<float> values(size_, value);
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }
  static net::FrameHeader push(std::uint64_t step, net::Generation generation = 1) {
    return {.kind = net::FrameKind::kPushPull,
            .request_id = 10 + step,
            .step = step,
            .sequence = step + 1,
            .generation = generation};
  }
  static void expect(ReplicaHost& host, ConnectionId id, net::FrameKind kind) {
    const auto frame = host.take(id);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->header.kind, kind);
  }
  // Expects the parameters of that step, which all equal `value`.
  static void expect_parameters(ReplicaHost& host, ConnectionId id, std::uint64_t step,
                                float value) {
    const auto frame = host.take(id);
    ASSERT_TRUE(frame.has_value());
    ASSERT_EQ(frame->header.kind, net::FrameKind::kParameters);
    EXPECT_EQ(frame->header.step, step);
    float first = 0;
    std::memcpy(&first, frame->body.data(), sizeof first);
    EXPECT_EQ(first, value);
  }

  const Task task_ = task_of_ps(0);
  const std::size_t size_ = math::layout_of(small_run().model).size();
  ReplicaHost host_{task_};
};

// Range 0 of two: its own ps, and the next one.
class PairedHosts : public RangeReplicaTest {
 protected:
  void SetUp() override {
    for (ReplicaHost* host : {&first_, &second_}) {
      views_[host] = host->connect(0, 7, net::ChannelPurpose::kView);
      tell(*host, {.number = {7, 1}, .primary = 0});
    }
    ASSERT_TRUE(first_.connects_to_backup());
    chief_ = first_.connect(0, 7);
    other_ = first_.connect(1, 8);
    begin_run(first_, chief_, run());
    ASSERT_TRUE(first_.core.host().may_fill());
    to_second_ = first_.connect_to_other();
    from_first_ = second_.connect({.cluster = {},
                                   .from = ps0_.self,
                                   .to = ps1_.self,
                                   .purpose = net::ChannelPurpose::kReplica,
                                   .replica = 1,
                                   .incarnation = ps0_.incarnation});
  }
  [[nodiscard]] virtual RunConfig run() const {
    RunConfig config = small_run();
    config.ps_replicas = 2;
    return config;
  }
  // Delivers the frames in flight between the two hosts.
  void carry() {
    for (bool any = true; any;) {
      any = carry(first_, to_second_, second_, from_first_);
      any = carry(second_, from_first_, first_, to_second_) || any;
    }
  }
  static bool carry(ReplicaHost& from, ConnectionId at, ReplicaHost& to, ConnectionId there) {
    const auto frame = from.take(at);
    if (frame) {
      EXPECT_TRUE(to.say(there, frame->header, frame->body));
    }
    return frame.has_value();
  }
  [[nodiscard]] net::Hello hello_to_second(std::size_t rank, std::uint64_t process) const {
    return {.cluster = {},
            .from = ps1_.cluster.trainer(rank),
            .to = ps1_.self,
            .purpose = net::ChannelPurpose::kStep,
            .replica = 1,
            .incarnation = process};
  }
  void tell(ReplicaHost& host, const net::View& view) {
    ASSERT_TRUE(host.say(views_[&host], {.kind = net::FrameKind::kView}, net::encode(view)));
  }

  // The second host has everything that the first has, and may take over.
  void become_a_pair() {
    carry();
    for (ReplicaHost* host : {&first_, &second_}) {
      tell(*host, {.number = {7, 2}, .primary = 0, .paired = true});
    }
  }

  const Task ps0_ = task_of_ps(0, 2);
  const Task ps1_ = task_of_ps(1, 2);
  ReplicaHost first_{ps0_, 0};
  ReplicaHost second_{ps1_, 1};
  std::map<ReplicaHost*, ConnectionId> views_;
  ConnectionId chief_ = 0;
  ConnectionId other_ = 0;
  ConnectionId to_second_ = 0;
  ConnectionId from_first_ = 0;
};

}  // namespace disttf::roles
