// Frames to a ps that tasks send when they follow the protocol.
#pragma once

#include <cstdint>

#include "net/wire/messages.h"
#include "net/wire/metrics_messages.h"
#include "net/wire/snapshot_messages.h"
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

}  // namespace disttf::fuzz
