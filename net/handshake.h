// The bodies of HELLO, WELCOME and REFUSED. Pure functions; byte tables in docs/wire_format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/cluster.h"
#include "net/frame.h"

namespace disttf::net {

// What a connection is for. The step channel belongs to the computing thread and may wait for
// minutes; the control channel carries heartbeats, so its silence is death.
enum class ChannelPurpose : std::uint8_t { kStep = 1, kControl = 2, kProbe = 3 };

struct Hello {
  ClusterHash cluster{};  // must equal the listener's
  TaskId from;            // who speaks
  TaskId to;              // whom it believes to speak to
  ChannelPurpose purpose = ChannelPurpose::kStep;
  std::uint64_t incarnation = 0;  // random per process: tells a restarted task from its old self
  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class ShardState : std::uint8_t {
  kEmpty = 0,     // waits for the chief's configuration and parameters
  kReady = 1,     // holds parameters
  kFinished = 2,  // the run is over
};

struct Welcome {
  std::uint64_t incarnation = 0;  // the listener's
  ShardState state = ShardState::kEmpty;
  std::uint32_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t heartbeat_ms = 0;  // how often the listener sends a heartbeat while a request waits
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Refusal {
  std::uint8_t exit_code = 1;  // what the refused task should exit with
  std::string sentence;        // UTF-8, at most kMaxSentenceBytes; longer ones are cut
};
inline constexpr std::size_t kMaxSentenceBytes = 4096;

[[nodiscard]] std::vector<std::byte> encode(const Hello& hello);
[[nodiscard]] std::vector<std::byte> encode(const Welcome& welcome);
[[nodiscard]] std::vector<std::byte> encode(const Refusal& refusal);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, Hello& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, Welcome& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, Refusal& out);

}  // namespace disttf::net
