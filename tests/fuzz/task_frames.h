// Frames to a ps that tasks send when they follow the protocol.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/wire/messages.h"
#include "net/wire/metrics_messages.h"
#include "net/wire/snapshot_messages.h"
#include "run/run_config.h"
#include "run/task.h"
#include "tests/fuzz/input.h"

namespace disttf::fuzz {

// The ps's state of the run.
struct HeldState {
  net::Generation generation = 0;
  std::uint64_t step = 0;
  std::uint64_t range_begin = 0;  // floats
};

// Returns the header of such a frame, selected by the input, about that state or one near it.
inline net::FrameHeader frame_of_a_task(Input& input, const HeldState& held) {
  const std::uint8_t what = input.byte();
  const std::uint8_t how = input.byte();
  const std::uint64_t request_id = input.byte();
  const net::Generation generation = held.generation + (how >> 6U == 3U ? 1U : 0U);
  const std::uint64_t step = held.step + (how >> 4U & 3U) % 3U;
  const std::uint64_t push = how & 15U;
  const bool is_odd = (how & 1U) != 0;
  const std::uint64_t begin = held.range_begin;
  net::FrameHeader header;
  switch (what % 14) {
    case 0:
      header = net::Pull{.request_id = request_id,
                         .configuration = (how & 4U) != 0 ? 1U : 0U,
                         .previous = is_odd,
                         .concludes = (how & 2U) != 0}
                   .to_header();
      break;
    case 1:
      header = net::AwaitStep{request_id, step, push, is_odd, generation}.to_header();
      break;
    case 2:
      header = net::PushPull{request_id, step, push, is_odd, (how & 12U) == 12U, begin, generation}
                   .to_header();
      break;
    case 3:
      header = net::Push{request_id, step, push, begin, generation}.to_header();
      break;
    case 4:
      header = net::Restore{request_id, step, begin, generation + 1, is_odd}.to_header();
      break;
    case 5:
      header = net::Goodbye{request_id, generation}.to_header();
      break;
    case 6:
      header = net::Shutdown{request_id, is_odd ? 0 : step, generation}.to_header();
      break;
    case 7:
      header = (how & 8U) != 0 ? net::PeerDiscovery{request_id, begin, push}.to_header()
                               : net::Heartbeat{0, is_odd ? 0 : generation}.to_header();
      break;
    case 8:
      header = net::GetConfig{request_id}.to_header();
      break;
    case 9:
      header = net::GetStatus{request_id}.to_header();
      break;
    case 10:
      header = net::Best{request_id, step, 0.5}.to_header();
      break;
    case 11:
      header = net::TraceSteps{request_id, step, push}.to_header();
      break;
    case 12:
      header = is_odd ? net::GetMetrics{request_id}.to_header()
                      : net::MetricsFrame{request_id}.to_header();
      break;
    default:
      header = net::Watch{request_id, step}.to_header();
      break;
  }
  return header;
}

// A task of a run of two ps, for targets that play the other tasks.
inline roles::Task task_of_run(net::TaskId self, std::size_t workers) {
  roles::Task task;
  task.cluster.ps = {{.host = "ps0", .port = 1}, {.host = "ps1", .port = 1}};
  for (std::size_t each = 0; each < workers; ++each) {
    // (Two workers on a host: they may push one sum.)
    task.cluster.workers.push_back(
        {.host = "w" + std::to_string(each / 2), .port = static_cast<std::uint16_t>(2 + each % 2)});
  }
  task.self = self;
  task.incarnation = 100;
  task.timeouts = {.start = std::chrono::seconds(300),
                   .peer = std::chrono::seconds(60),
                   .worker = std::chrono::seconds(20),
                   .heartbeat_timeout = std::chrono::seconds(10)};
  return task;
}

// The configuration of a small run; a byte of the input selects how it trains.

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
