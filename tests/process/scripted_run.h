// The run that a scripted chief publishes: its ps hold a softmax model. For tests that link
// disttf_roles.
#pragma once

#include <cstddef>

#include "math/model.h"
#include "math/parameter_layout.h"
#include "net/wire/frame.h"
#include "net/wire/messages.h"
#include "run/run_config.h"
#include "tests/process/raw_peer.h"

namespace disttf::test_process {

inline roles::RunConfig softmax_run(std::size_t trainers) {
  roles::RunConfig config;
  config.dataset = "MNIST";
  config.data_checksum = "0";
  config.model.kind = math::ModelKind::kSoftmax;
  config.optimizer.learning_rate = 0.1F;
  config.trainers = trainers;
  return config;
}

// Publishes the configuration to that one of `ps_count` ps, and restores this state: every
// parameter is 0.
inline void publish_and_restore(const RawPeer& chief, const roles::RunConfig& config,
                                std::uint64_t step, net::Generation generation, std::size_t ps = 0,
                                std::size_t ps_count = 1) {
  expect_ack(chief, frame({.kind = net::FrameKind::kPublish}, bytes_of(roles::to_json(config))));
  const math::Range range = math::shard_range(math::layout_of(config.model).size(), ps, ps_count);
  const net::Restore restore{.step = step, .range_begin = range.begin, .generation = generation};
  expect_ack(chief, frame(restore.to_header(), Bytes(range.size() * sizeof(float))));
}

}  // namespace disttf::test_process
