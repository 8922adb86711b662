// The run that a scripted chief publishes: its ps hold a softmax model. For tests that link
// disttf_roles.
#pragma once

#include <cstddef>

#include "math/model.h"
#include "net/wire/frame.h"
#include "roles/run/run_config.h"
#include "tests/process/scripted_trainer.h"

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

// Publishes the configuration to the only ps, and restores this state: every parameter is 0.
inline void publish_and_restore(const RawPeer& chief, const roles::RunConfig& config,
                                std::uint64_t step, net::Generation generation) {
  expect_ack(chief, frame({.kind = net::FrameKind::kPublish}, bytes_of(roles::to_json(config))));
  const std::size_t size = math::layout_of(config.model).size();
  expect_ack(chief,
             frame({.kind = net::FrameKind::kRestore, .step = step, .generation = generation},
                   Bytes(size * sizeof(float))));
}

}  // namespace disttf::test_process
