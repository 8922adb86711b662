// Telemetry on control channels, which passes a ps between trainers and the chief: metrics that
// trainers send and the chief asks for, and the window of steps that all tasks are to trace.
//
// A value. Not thread-safe: the ps's only thread owns it.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/wire/frame.h"
#include "roles/ps/core/peer_connection.h"
#include "run/monitor/core/step_sampling.h"

namespace disttf::roles {

class TelemetryRelay {
 public:
  // Metrics that are being received on one connection.
  struct Incoming {
    std::string text;
    std::array<std::span<std::byte>, 1> place = {};  // the destination of `text`
  };
  // The number of texts that are kept of each trainer: a chief that asks for none must not cost
  // memory.
  static constexpr std::size_t kMostOfTrainer = 4;

  // A trainer sends metrics. Returns where to receive them; nullopt if the frame is invalid. Once
  // they are complete, keep() is to be called.
  [[nodiscard]] static std::optional<BodyPlan> begin(Incoming& incoming,
                                                     const net::FrameHeader& header);
  void keep(std::size_t rank, std::string text);
  // Returns what trainers have sent since the last call, verbatim; of each trainer the newest.
  [[nodiscard]] std::vector<std::string> take();

  // Sets the window that the chief's frame names. Returns false if the frame is invalid.
  [[nodiscard]] bool set_window(const net::FrameHeader& header);
  [[nodiscard]] const StepWindow& window() const noexcept { return window_; }

 private:
  std::map<std::size_t, std::deque<std::string>> texts_;  // by rank
  StepWindow window_;
};

}  // namespace disttf::roles
