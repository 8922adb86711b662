// A task of a run of two ps, for targets that play the other tasks.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "run/task.h"

namespace disttf::fuzz {

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

}  // namespace disttf::fuzz
