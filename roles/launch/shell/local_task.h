// One task of a launch, as its supervisor keeps it, and what its processes are told.
//
// Values and pure functions.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/address.h"
#include "net/wire/cluster.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/launcher.h"
#include "roles/launch/shell/log_tail.h"
#include "roles/launch/shell/managed_job.h"
#include "roles/launch/shell/reserved_port.h"

namespace disttf::roles {

// One task and its process, while there is one. What is to become of them: SupervisedTask.
struct LocalTask {
  std::size_t number = 0;  // its place in TaskProcesses::tasks(), and the supervisor's name for it
  net::TaskId id;
  std::string name;  // "[worker:1]"
  bool is_chief = false;
  ReservedPort port;
  net::Address listed;            // what the lists say; another one than its port's once replaced
  std::size_t workers_known = 0;  // the length of the list of workers that it is given
  pid_t pid = -1;                 // -1 while no process of the task lives
  std::chrono::system_clock::time_point since{};
  std::vector<int> cpus = {};  // that it may use; empty: all
  LogTail log = {};
  std::optional<ReservedPort> metrics_port = {};  // where it is to export them over http

  [[nodiscard]] TaskStatus status(const SupervisedTask& state) const;
  [[nodiscard]] bool is_moved() const { return listed != port.address(); }
};

using LocalTasks = std::vector<std::unique_ptr<LocalTask>>;

// Those that the options count: ps, chief, workers, evaluator.
[[nodiscard]] std::vector<net::TaskId> tasks_of(const LaunchOptions& options);
[[nodiscard]] RestartPolicy::Part part_of(const net::TaskId& task, const LaunchOptions& options);

// What a process of the task is told: its words, behind the program's name, and variables of its
// environment, "NAME=value".
[[nodiscard]] std::vector<std::string> arguments_for(const LocalTask& task, const LocalTasks& all,
                                                     const LaunchOptions& options);
[[nodiscard]] std::vector<std::string> variables_for(const LocalTask& task, const LocalTasks& all);

}  // namespace disttf::roles
