// The channel of a task that watches a run to one ps: it requests the run's configuration, and the
// parameters of a later step.
//
// Errors are those of the channel; after any error the link is closed. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "math/parameter_layout.h"
#include "net/tcp/channel.h"
#include "net/waiting/interrupt.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "run/task.h"
#include "run/watch/snapshot_plan.h"

namespace disttf::roles {

class WatchLink {
 public:
  // Both must outlive the link.
  WatchLink(const Task& task, std::size_t ps_index, const net::Interrupt& interrupt);

  // Connects to the host that serves the range: with two hosts, `is_replicated`, to the primary.
  // Throws Failure if it is refused, or if this process's own limits prevent the connection.
  [[nodiscard]] std::error_code connect(bool is_replicated);
  // `json` empty: there is none yet.
  [[nodiscard]] std::error_code get_config(std::string& json);
  // Requests the parameters of `step`, or the first later ones, or the result of the run, instead
  // of the previous request.
  [[nodiscard]] std::error_code watch(std::uint64_t step);
  // Receives one frame that has begun to arrive. `part`: of the range, with its values in `place`;
  // nullopt for a heartbeat, or, with `has_nothing`, if the run is over and the ps has nothing of
  // its result.
  [[nodiscard]] std::error_code receive(math::Range range, std::span<float> place,
                                        std::optional<SnapshotPlan::Part>& part, bool& has_nothing);

  [[nodiscard]] const net::Welcome& welcome() const noexcept { return welcome_; }
  [[nodiscard]] bool is_open() const noexcept { return channel_ && channel_->is_open(); }
  [[nodiscard]] int fd() const { return channel_ ? channel_->fd() : -1; }
  void close() noexcept { channel_.reset(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] std::error_code connect_to(std::uint8_t replica);
  [[nodiscard]] std::error_code unexpected(const net::FrameHeader& header);

  const Task& task_;
  const net::Interrupt& interrupt_;
  const std::size_t index_;
  const std::string name_;  // "ps 1 (10.0.0.7:2222)"
  std::unique_ptr<net::Channel> channel_;
  net::Welcome welcome_;
  std::uint64_t requests_ = 0;
};

}  // namespace disttf::roles
