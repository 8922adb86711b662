// The bodies of RUN_TASK and TASK_ENDED: how a driver process makes servers train.
//
//   RUN_TASK, 20 bytes                      TASK_ENDED: 8 bytes and more
//    0  4  start timeout, s                  0  4  exit code, 0 to 255
//    4  4  peer timeout, s                   4  4  signal that ended it, 0 to 64; 0: none
//    8  4  worker timeout, s                 8  n  last line of its log, UTF-8, n <= 4096
//   12  4  heartbeat timeout, s
//   16  1  data set: 1 the server's own choice, 2 mnist, 3 digits, others of later versions
//   17  3  reserved, 0
//
// The server's own lists and driven() define the run's cluster. A worker receives from ps 0 what is
// trained, and how. Nothing here names a program, a command-line argument, a host or a file.
//
// Integers are little-endian. The decoders take untrusted bytes: anything else is
// WireError::kBadBody, and `out` is then untouched. Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/wire/cluster.h"

namespace disttf::net {

inline constexpr std::chrono::seconds kLongestRequestedTimeout{86'400};
inline constexpr std::size_t kMaxLastLineBytes = 4096;

// The value of RunTaskRequest::data that leaves the choice to the server.
inline constexpr std::uint8_t kAnyData = 1;

struct RunTaskRequest {
  // Each from 1 s to kLongestRequestedTimeout.
  std::chrono::seconds start{1};
  std::chrono::seconds peer{1};
  std::chrono::seconds worker{1};
  std::chrono::seconds heartbeat_timeout{1};
  std::uint8_t data = kAnyData;  // never 0; storage/download/datasets.h has the numbers
  friend bool operator==(const RunTaskRequest&, const RunTaskRequest&) = default;
};

struct TaskEnd {
  std::uint8_t exit_code = 0;
  std::uint8_t signal = 0;
  std::string last_line = {};  // encoding truncates it, decoding makes it safe to log
  friend bool operator==(const TaskEnd&, const TaskEnd&) = default;
};

// The cluster of a run that a driver leads: the servers' lists, with the driver as the chief under
// a name that is never resolved. It is the same for every driver, so a server knows the run's tasks
// before it is asked to run one.
[[nodiscard]] Cluster driven(const Cluster& servers);

[[nodiscard]] std::vector<std::byte> encode(const RunTaskRequest& request);
[[nodiscard]] std::vector<std::byte> encode(const TaskEnd& end);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, RunTaskRequest& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, TaskEnd& out);

}  // namespace disttf::net
