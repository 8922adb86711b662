// The configuration of a small run; a byte of the input selects how it trains.
#pragma once

#include <cstddef>
#include <cstdint>

#include "run/run_config.h"

namespace disttf::fuzz {

// The model has 14 parameters. Bits of `choice`: 1 momentum; 6, how gradients are counted; 8 two
// hosts for a range; 16 bf16 on the wire; 32 bounded staleness, where steps do not wait; 64
// rejected gradients are counted and used; 128 gradients are limited in norm.
inline roles::RunConfig run_of_choice(std::uint8_t choice, std::size_t trainers) {
  roles::RunConfig config;
  config.dataset = "MNIST";
  config.data_checksum = "0";
  config.model.kind = math::ModelKind::kSoftmax;
  config.model.input = {.channels = 6};
  config.model.classes = 2;
  config.optimizer.kind =
      (choice & 1U) != 0 ? math::OptimizerKind::kMomentum : math::OptimizerKind::kSgd;
  config.trainers = trainers;
  config.train_steps = 6;
  config.sync_replicas = (choice & 6U) != 2;
  config.replicas_to_aggregate = (choice & 6U) == 4 ? 2 : 0;
  config.ps_replicas = (choice & 8U) != 0 ? 2 : 1;
  if ((choice & 6U) == 6 && config.ps_replicas == 1) {
    config.micro_batches = 4;
    config.min_workers = 1;
  } else if ((choice & 16U) != 0) {
    config.wire_dtype = roles::WireDtype::kBf16;
  }
  if (!config.sync_replicas && (choice & 32U) != 0) config.max_staleness = 1;
  if ((choice & 64U) != 0) config.rejected_gradients = roles::RejectedGradients::kCount;
  if ((choice & 128U) != 0) config.max_gradient_norm = 1;
  return config;
}

}  // namespace disttf::fuzz
