// What every task knows from its command line: the cluster, its place in it, its patience.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "net/wire/cluster.h"
#include "roles/run/chaos_options.h"

namespace disttf::net {
class Credentials;  // net/transport/credentials.h
}

namespace disttf::roles {

class Meters;  // roles/monitor/shell/meters.h

// How long a task waits before it ends with a sentence. All bounded: nothing hangs.
struct Timeouts {
  std::chrono::seconds start{300};   // for tasks that have not been seen yet
  std::chrono::seconds peer{60};     // for a chief or a ps that was lost
  std::chrono::seconds worker{60};   // for a worker that was lost (sync)
  std::chrono::seconds silence{10};  // without a heartbeat: as good as dead
};

// A trainer beats this often on its control channels, a ps on a step channel that waits for it.
inline constexpr std::chrono::milliseconds kHeartbeatInterval{1000};

// With --ps_replicas 2 a host of a range that was started again is to be reached soon: until then
// its range has no copy, and trainers may be waiting for it. The longest pause between two
// attempts.
inline constexpr std::chrono::milliseconds kLongestDialPause{250};

// How tensors travel between a trainer and a ps.
enum class Transport : std::uint8_t {
  kAuto,          // through shared memory where the two find that they have some
  kTcp,           // in frames
  kSharedMemory,  // a trainer ends with a sentence where a ps has none for it
};

// What a task does once the run is over and its result is printed.
enum class OnFinish : std::uint8_t {
  kExit,
  kIdle,  // stays, and exits 0 on SIGTERM or SIGINT; a ps tells late trainers that the run is over
};

struct Task {
  net::Cluster cluster;
  net::TaskId self;
  std::uint64_t incarnation = 0;  // of this process, as it begins: see incarnation.h
  Timeouts timeouts;
  ChaosOptions faults = {};  // testing: what is done to the frames of a trainer's step channels
  Transport transport = Transport::kAuto;
  OnFinish on_finish = OnFinish::kExit;
  std::size_t threads = 0;  // that compute; 0: as many as suit the task, see machine.h
  int listen_fd = -1;  // a socket that listens already (`launch`); -1: open one on the own port
  // By what the tasks of the run know each other, so that nobody else is one of them; null: by
  // nothing, and all is said in clear.
  std::shared_ptr<net::Credentials> credentials = {};
  Meters* meters = nullptr;  // of this process, which they outlive it in; null: nobody measures
};

// "60 s": how messages name a limit.
[[nodiscard]] std::string seconds_text(std::chrono::seconds seconds);

// "worker 1 (10.0.0.7:2223)": how messages name a task.
[[nodiscard]] std::string describe(const net::Cluster& cluster, const net::TaskId& task);

// The ps that hosts a range: its own, `replica` 0, or with --ps_replicas 2 the one after it.
[[nodiscard]] net::TaskId host_of_range(const net::Cluster& cluster, std::size_t range,
                                        std::uint8_t replica);

}  // namespace disttf::roles
