// One task of a launch, and the words and variables of its processes.
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
#include "roles/launch/core/fault_plan.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/child_output.h"
#include "roles/launch/shell/launcher.h"
#include "roles/launch/shell/managed_job.h"
#include "roles/launch/shell/reserved_port.h"

namespace disttf::roles {

// One task and its process, if there is one. SupervisedTask has the plans for them.
struct LocalTask {
  std::size_t number = 0;  // index in TaskProcesses::tasks(), and its number in the supervisor
  net::TaskId id;
  std::string name;  // "[worker:1]"
  bool is_chief = false;
  ReservedPort port;
  net::Address listed;            // in the lists; differs from its port's once it was replaced
  std::size_t workers_known = 0;  // the length of its list of workers
  pid_t pid = -1;                 // -1 while it has no process
  std::chrono::system_clock::time_point since{};
  std::vector<int> cpus = {};  // the CPUs that it may use; empty: all
  LogTail log = {};
  // What SIGKILL, SIGSTOP and SIGCONT reach of its processes, until the next of them but SIGSTOP.
  ProcessFault::Part hit = ProcessFault::Part::kAll;
  std::optional<ReservedPort> metrics_port = {};  // of its metrics over HTTP

  [[nodiscard]] TaskStatus status(const SupervisedTask& state) const;
  [[nodiscard]] bool is_moved() const { return listed != port.address(); }
};

using LocalTasks = std::vector<std::unique_ptr<LocalTask>>;

// The tasks that the options count: ps, chief, workers, evaluator.
[[nodiscard]] std::vector<net::TaskId> tasks_of(const LaunchOptions& options);
[[nodiscard]] RestartPolicy::Part part_of(const net::TaskId& task, const LaunchOptions& options);

// What a process of the task gets: words after the program's name, and variables of its
// environment, "NAME=value".
[[nodiscard]] std::vector<std::string> arguments_for(const LocalTask& task, const LocalTasks& all,
                                                     const LaunchOptions& options);
// Whether the task computes by a user's own program, so that its process is a supervisor.
[[nodiscard]] bool has_own_program(const LocalTask& task, const LaunchOptions& options);
[[nodiscard]] std::vector<std::string> variables_for(const LocalTask& task, const LocalTasks& all,
                                                     const LaunchOptions& options);

}  // namespace disttf::roles
