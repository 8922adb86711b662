// The bodies of RUN_TASK and TASK_ENDED: how a driver process makes servers train.
//
// The server's own lists and driven() define the run's cluster. A worker receives from ps 0 what is
// trained, and how. Nothing here names a program, a command-line argument, a host or a file.
// encode() and decode(): net/wire/body_fields.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/wire/body_fields.h"
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

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u32("start timeout", self.start, 1, kLongestRequestedTimeout);
    fields.u32("peer timeout", self.peer, 1, kLongestRequestedTimeout);
    fields.u32("worker timeout", self.worker, 1, kLongestRequestedTimeout);
    fields.u32("heartbeat timeout", self.heartbeat_timeout, 1, kLongestRequestedTimeout);
    fields.u8("data set", self.data, 1, 255);
    fields.reserved(3);
  }
  friend bool operator==(const RunTaskRequest&, const RunTaskRequest&) = default;
};

struct TaskEnd {
  std::uint8_t exit_code = 0;
  std::uint8_t signal = 0;
  std::string last_line = {};  // of its log

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u32("exit code", self.exit_code, 0, 255);
    fields.u32("signal", self.signal, 0, 64);
    fields.text("last line", self.last_line, kMaxLastLineBytes);
  }
  friend bool operator==(const TaskEnd&, const TaskEnd&) = default;
};

}  // namespace disttf::net
