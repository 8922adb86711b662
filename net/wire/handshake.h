// The bodies of HELLO, WELCOME and REFUSED.
//
//   HELLO, 76 bytes                    WELCOME, 32 bytes              REFUSED, 12 bytes and more
//    0  32  cluster hash                0  8  incarnation              0  1  exit code
//   32   8  incarnation                 8  8  step                     1  3  reserved, 0
//   40  24  last answer: generation,   16  8  generation               4  8  replaced_by
//           step, push                 24  4  heartbeat_ms            12  n  sentence, UTF-8,
//   64   4  from: index                28  1  state                          n <= 4096
//   68   4  to: index                  29  1  replica role
//   72   1  from: job                  30  2  reserved, 0
//   73   1  to: job
//   74   1  purpose
//   75   1  replica
//
// Integers are little-endian; docs/wire_format.md has an example. Decoders take untrusted bytes:
// any other length, job, purpose, replica, state, replica role or reserved byte is
// WireError::kBadBody, and `out` is then untouched. Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/wire/cluster.h"
#include "net/wire/frame.h"

namespace disttf::net {

inline constexpr std::size_t kHelloBytes = 76;
inline constexpr std::size_t kWelcomeBytes = 32;

// The purpose of a connection. The step channel belongs to the computing thread and may be idle for
// minutes. The control channel carries heartbeats, so a timeout on it means that the peer is lost.
// A probe only checks whether the task runs, and is closed after WELCOME. A state channel brings
// the chief the training state beside the steps. With --ps_replicas, a replica channel carries the
// primary's updates to a range's backup, and a view channel tells a host its replica role. An order
// channel goes to a server, which evaluates an expression (net/wire/compute_request.h), or runs its
// task of a run as long as the channel lasts (net/wire/run_task_request.h); a peer that is no task
// of the cluster uses it under the name of an evaluator.
enum class ChannelPurpose : std::uint8_t {
  kStep = 1,
  kControl = 2,
  kProbe = 3,
  kState = 4,
  kReplica = 5,
  kView = 6,
  kRequest = 7,
};

// The newest answer that a trainer's process has received from a range, from either host. A host
// that serves the range in that generation has this state, too, or has lost the range's state.
struct LastAnswer {
  Generation generation = 0;  // 0: none
  std::uint64_t step = 0;     // of the parameters
  std::uint64_t push = 0;     // number of its newest answered push; 0: none
  friend bool operator==(const LastAnswer&, const LastAnswer&) = default;
};

struct Hello {
  ClusterHash cluster{};  // must equal the listener's
  TaskId from;            // the sender
  TaskId to;              // the task that it means to reach
  ChannelPurpose purpose = ChannelPurpose::kStep;
  // To a ps: which of the ranges it hosts. 0: its own, 1: that of the ps before it.
  std::uint8_t replica = 0;
  // Of the sender's process. It tells a restarted task from its predecessor, and which of two
  // processes of one trainer is the newer one: the higher. See run/incarnation.h.
  std::uint64_t incarnation = 0;
  LastAnswer last = {};  // on a step channel
  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class ShardState : std::uint8_t {
  kEmpty = 0,     // waits for the chief's configuration and parameters
  kReady = 1,     // holds parameters
  kFinished = 2,  // the run is over
};

// The replica role of a ps for a range that two ps host.
enum class ReplicaRole : std::uint8_t {
  kOnly = 0,     // has no view with another host
  kPrimary = 1,  // serves trainers
  kBackup = 2,   // keeps a copy of the primary's state
};

struct Welcome {
  std::uint64_t incarnation = 0;  // the listener's, or that of the process in which its state began
  ShardState state = ShardState::kEmpty;
  ReplicaRole replica_role = ReplicaRole::kOnly;
  Generation generation = 0;
  std::uint64_t step = 0;
  std::uint32_t heartbeat_ms = 0;  // interval of the listener's heartbeats while a request waits
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// Exit codes that net/ itself uses in a refusal (docs/operations.md lists all).
inline constexpr std::uint8_t kExitError = 1;
inline constexpr std::uint8_t kExitMisconfigured = 2;
inline constexpr std::uint8_t kExitRestartMe = 138;

struct Refusal {
  std::uint8_t exit_code = 1;  // what the refused task should exit with
  std::string sentence;        // UTF-8; encoding truncates it to kMaxSentenceBytes, decoding makes
                               // it safe to log (one_line() in net/wire/text.h)
  // Not 0: a trainer was refused because another process is that trainer; this is the highest
  // incarnation that the listener has recorded.
  std::uint64_t replaced_by = 0;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};
inline constexpr std::size_t kMaxSentenceBytes = 4096;

[[nodiscard]] std::vector<std::byte> encode(const Hello& hello);
[[nodiscard]] std::vector<std::byte> encode(const Welcome& welcome);
[[nodiscard]] std::vector<std::byte> encode(const Refusal& refusal);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, Hello& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, Welcome& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, Refusal& out);

}  // namespace disttf::net
