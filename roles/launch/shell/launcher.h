// The launch role: a whole cluster on this machine, as real processes of this same file.
//
// Every child gets its listening socket already open, so no port is guessed or raced for. Children
// are in process groups of their own (a Ctrl-C reaches them through the launcher, once) and are
// killed by the kernel when the launcher dies, however it dies. A child that was killed, or lost
// its peers, is started again on the same port as the restart policy allows. One that fails for
// good ends the run: the others are stopped, and its exit code is the launcher's. Who is stopped
// with a --train_dir goes in order: the chief, which saves, then the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "roles/launch/core/fault_plan.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/launch/shell/run_secret.h"
#include "roles/monitor/shell/metrics_address.h"
#include "roles/monitor/shell/page_server.h"

namespace disttf::roles {

// What one task may use of this machine.
struct TaskLimits {
  // So many CPUs, in whole ones, of those that launch may use: dealt out in turn, from the first
  // again where they do not suffice.
  std::optional<double> cpus;
  // Of memory of its own: heap, stacks, private maps (RLIMIT_DATA). Files that are mapped and
  // memory that tasks share do not count.
  std::optional<std::uint64_t> memory_mib;

  friend bool operator==(const TaskLimits&, const TaskLimits&) = default;
};

// Where a launch is asked and told (docs/managing.md).
struct ControlOptions {
  std::string directory;              // for a socket without a path; made where it is missing
  std::string socket;                 // its path; empty: one of its own in `directory`
  std::optional<std::uint16_t> port;  // http on loopback as well; 0: the system chooses
};

// What `disttf update` asks for.
struct LaunchUpdate {
  std::optional<std::size_t> workers;
  std::optional<std::string> options;  // the text of an options file
};

struct LaunchOptions {
  std::size_t ps = 1;
  std::size_t workers = 2;
  bool chief = false;      // a chief task of its own instead of worker 0
  bool evaluator = false;  // beside the run; its end is never the run's
  RestartOptions restart;
  std::optional<ChaosOptions> chaos;  // launch kills and freezes its children itself
  // What every child gets besides who it is: "--train_steps=100", ...
  std::vector<std::string> task_arguments;
  TaskLimits ps_limits = {};
  TaskLimits trainer_limits = {};
  std::optional<ControlOptions> control = {};  // nullopt: none
  std::optional<PageOptions> page = {};        // nullopt: none
  SecretOfRun secret = SecretOfRun::kGiven;
  MetricsOptions metrics = {};          // launch's own; its tasks get others
  std::vector<std::string> notes = {};  // on what an options file says and has no effect
  // What the launch's own command line means together with an update. Throws std::invalid_argument.
  std::function<LaunchOptions(const LaunchUpdate&)> reconsider = {};
  // Both set, or none: who exports the launch's metrics, for as long as it runs.
  Meters* meters = nullptr;
  MetricsAddress* metrics_address = nullptr;
};

// Standard output: the chief's results, as they are. Standard error: every line of every child
// behind its name, "[worker:1] ...", and on a terminal one live line of progress.
// Returns the exit code: 0, the failed child's, 138 when one was killed, 130/143 on a signal.
// Throws Failure or std::system_error when the children cannot be started.
int run_launcher(const LaunchOptions& options);

}  // namespace disttf::roles
