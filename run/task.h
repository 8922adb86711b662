// What every task has from its command line: the cluster, its own identity in it, its timeouts. Its
// incarnation; how long a finished run is waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "net/wire/cluster.h"

namespace disttf::net {

class Credentials;  // net/tls/credentials.h
}

namespace disttf::roles {

// The value of --chaos and --chaos_frames: SEED,RATE.
struct ChaosOptions {
  std::uint64_t seed = 0;
  std::uint32_t per_1000 = 0;  // expected faults in 1000 steps or frames; 0: none
};

// A higher rate would mean more than one fault in each.
inline constexpr std::uint32_t kMaxChaosRate = 1000;

class Meters;  // run/monitor/shell/meters.h

// How long a task waits before it ends with a sentence. All are bounded, so nothing hangs.
struct Timeouts {
  std::chrono::seconds start{300};             // for tasks that have never connected
  std::chrono::seconds peer{60};               // for a lost chief or ps
  std::chrono::seconds worker{60};             // for a lost worker (sync)
  std::chrono::seconds heartbeat_timeout{10};  // the heartbeat timeout
};

// The interval of a trainer's heartbeats on its control channels, and of a ps's on a step channel
// that waits for it.
inline constexpr std::chrono::milliseconds kHeartbeatInterval{1000};

// The longest pause between two attempts to connect to a host of a range, with --ps_replicas 2. It
// is short, because until a restarted host is connected its range has no copy, and trainers may be
// waiting.
inline constexpr std::chrono::milliseconds kLongestDialPause{250};

// How tensors are transferred between a trainer and a ps.
enum class Transport : std::uint8_t {
  kAuto,  // in shared memory, if both have some in common
  kTcp,   // in frames
  // In shared memory; a trainer ends with a sentence if a ps has none in common with it.
  kSharedMemory,
};

// What a task does once the run is over and its result is printed.
enum class OnFinish : std::uint8_t {
  kExit,
  // Stays, and exits 0 on SIGTERM or SIGINT; a ps then notifies late trainers of the end of the
  // run.
  kIdle,
};

struct Task {
  net::Cluster cluster;
  net::TaskId self;
  std::uint64_t incarnation = 0;  // of this process at its start: see below
  Timeouts timeouts;
  ChaosOptions faults = {};  // testing: faults in the frames of a trainer's step channels
  Transport transport = Transport::kAuto;
  OnFinish on_finish = OnFinish::kExit;
  std::size_t threads = 0;  // for computing; 0: as many as suit the task, see machine.h
  int listen_fd = -1;       // a listening socket (from `launch`); -1: open one on the own port
  // What the tasks of the run authenticate each other with; null: nothing, and all traffic is in
  // clear.
  std::shared_ptr<net::Credentials> credentials = {};
  Meters* meters = nullptr;  // of this process, which they outlive; null: metrics are off
};

// "60 s": a limit as messages name it.
[[nodiscard]] std::string seconds_text(std::chrono::seconds seconds);

// "worker 1 (10.0.0.7:2223)": a task as messages name it.
[[nodiscard]] std::string describe(const net::Cluster& cluster, const net::TaskId& task);

// Returns the ps that hosts a range: its own, `replica` 0, or with --ps_replicas 2 the next one.
[[nodiscard]] net::TaskId host_of_range(const net::Cluster& cluster, std::size_t range,
                                        std::uint8_t replica);

// How long the tasks of a finished run are waited for. Tasks leave within 2 s. Workers evaluate the
// result as the chief has done, in `evaluation`, after the chief has left. A multiple of both, for
// a busy machine.
[[nodiscard]] constexpr std::chrono::seconds finish_grace(std::chrono::nanoseconds evaluation) {
  constexpr std::chrono::seconds kToLeave{10};
  constexpr int kEvaluations = 3;
  return kToLeave + std::chrono::ceil<std::chrono::seconds>(kEvaluations * evaluation);
}

// Identifies and orders the processes of one task: of two processes of a trainer the one with the
// higher incarnation is the newer one, and every ps that sees both agrees, in whatever order they
// come.
//
//  bits 63 to 20  milliseconds since 1970, by the clock of the machine that the process began on
//  bits 19 to 0   random
//
// Clocks differ, and a process may start with a clock that is behind that of its predecessor. So a
// trainer that has just started, and learns from a ps of a higher incarnation than its own, takes
// one above that. Pure functions.
inline constexpr unsigned kIncarnationRandomBits = 20;

// Only the lowest bits of `random` count.
[[nodiscard]] constexpr std::uint64_t make_incarnation(std::chrono::milliseconds since_1970,
                                                       std::uint64_t random) noexcept {
  const std::uint64_t low = random & ((std::uint64_t{1} << kIncarnationRandomBits) - 1);
  return (static_cast<std::uint64_t>(since_1970.count()) << kIncarnationRandomBits) | low;
}

// Returns `fresh`, the incarnation of a process that begins now, or, if that is not above `other`,
// an equally random one above `other`. (Only an impostor could send an incarnation so high that
// none is above it.)
[[nodiscard]] constexpr std::uint64_t incarnation_above(std::uint64_t other,
                                                        std::uint64_t fresh) noexcept {
  if (fresh > other) {
    return fresh;
  }
  const std::chrono::milliseconds next((other >> kIncarnationRandomBits) + 1);
  return make_incarnation(next, fresh);
}

}  // namespace disttf::roles
