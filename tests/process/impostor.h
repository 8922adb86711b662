// A peer that sends false messages to a ps.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <span>
#include <vector>

#include "math/model.h"
#include "run/run_config.h"
#include "tests/process/process_test.h"
#include "tests/process/raw_peer.h"
#include "tests/process/scripted_run.h"

namespace disttf::test_process {

// One ps, and one worker, the chief, which the test plays.
class ImpostorFixture : public ProcessTest {
 protected:
  void SetUp() override {
    ps_ = &run_task(cluster_, net::Job::kPs, 0);
    ASSERT_TRUE(says(*ps_, "Started server"));
    config_ = softmax_run(1);
    size_ = math::layout_of(config_.model).size();
  }
  void TearDown() override { ps_->send(SIGKILL); }

  // Connects a step channel, or another, and expects a WELCOME.
  [[nodiscard]] RawPeer connect(net::ChannelPurpose purpose = net::ChannelPurpose::kStep) const {
    return connect_to(cluster_, purpose);
  }
  [[nodiscard]] static RawPeer connect_to(
      const ClusterOnLoopback& cluster, net::ChannelPurpose purpose = net::ChannelPurpose::kStep) {
    return welcomed(cluster, {.purpose = purpose});
  }

  void expect_fenced(const Bytes& request) const {
    const RawPeer peer = connect();
    Bytes body;
    EXPECT_EQ(reply_to(peer, request, body), net::FrameKind::kFenced);
  }

  [[nodiscard]] Bytes publish() const {
    return frame({.kind = net::FrameKind::kPublish}, bytes_of(roles::to_json(config_)));
  }
  // Starts the run with every parameter 0.
  void start_run() const { start_run(connect()); }
  void start_run(const RawPeer& chief) const { publish_and_restore(chief, config_, 0, 1); }
  void expect_parameters_unchanged() const {
    const RawPeer peer = connect();
    Bytes parameters;
    ASSERT_EQ(reply_to(peer, frame({.kind = net::FrameKind::kPull}), parameters),
              net::FrameKind::kParameters);
    EXPECT_EQ(parameters, Bytes(size_ * sizeof(float)));
  }
  // Returns a gradient of the right size, full of ones.
  [[nodiscard]] Bytes gradient_bytes() const {
    const std::vector<float> ones(size_, 1.0F);
    const auto bytes = std::as_bytes(std::span(ones));
    return {bytes.begin(), bytes.end()};
  }

  const ClusterOnLoopback cluster_{{.ps = 1, .workers = 1}};
  Process* ps_ = nullptr;
  roles::RunConfig config_;
  std::size_t size_ = 0;
};

}  // namespace disttf::test_process
