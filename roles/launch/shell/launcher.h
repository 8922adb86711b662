// The launch role: a whole cluster on this machine, as processes of this same file.
//
// Every child inherits its listening socket, so no port is guessed or raced for. Children are in
// their own process groups (a Ctrl-C reaches them once, through the launcher); the kernel kills
// them when the launcher dies. A child that was killed, or lost its peers, is restarted at the same
// port if the restart policy allows. A permanent failure ends the run: the others are stopped, and
// its exit code is the launcher's. A run with a --train_dir stops in order: the chief, which saves,
// then the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "roles/launch/core/fault_plan.h"
#include "roles/launch/core/gpu_assignment.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/launch/shell/run_secret.h"
#include "run/monitor/shell/metrics_address.h"
#include "run/monitor/shell/page_server.h"

namespace disttf::roles {

// The resources that one task may use.
struct TaskLimits {
  // The number of CPUs, rounded up, out of those that launch may use. They are assigned in turn,
  // starting over when they do not suffice.
  std::optional<double> cpus;
  // Limit of private memory: heap, stacks, private maps (RLIMIT_DATA). Mapped files and shared
  // memory do not count.
  std::optional<std::uint64_t> memory_mib;

  friend bool operator==(const TaskLimits&, const TaskLimits&) = default;
};

// The control addresses of a launch (docs/managing.md).
struct ControlOptions {
  std::string directory;              // for a socket without a path; created if missing
  std::string socket;                 // its path; empty: a generated one in `directory`
  std::optional<std::uint16_t> port;  // HTTP on loopback as well; 0: any free port
};

// A request of `disttf update`.
struct LaunchUpdate {
  std::optional<std::size_t> workers;
  std::optional<std::string> options;  // the text of an options file
};

struct LaunchOptions {
  std::size_t ps = 1;
  std::size_t workers = 2;
  bool chief = false;      // a separate chief instead of worker 0
  bool evaluator = false;  // beside the run; its exit does not end it
  RestartOptions restart;
  std::optional<ChaosOptions> chaos;  // launch kills and freezes its children itself
  // Flags of every child besides its role: "--train_steps=100", ...
  std::vector<std::string> task_arguments;
  // A user's own program that computes the gradients: the flags that each trainer gets for it, and
  // its words. Empty: trainers compute a built-in model.
  std::vector<std::string> program_arguments = {};
  std::vector<std::string> program_command = {};
  TaskLimits ps_limits = {};
  TaskLimits trainer_limits = {};
  GpuOptions gpus = {};                        // of the trainers
  std::optional<ControlOptions> control = {};  // nullopt: none
  std::optional<PageOptions> page = {};        // nullopt: none
  SecretOfRun secret = SecretOfRun::kGiven;
  MetricsOptions metrics = {};          // launch's own; its tasks get others
  std::vector<std::string> notes = {};  // on settings of an options file without effect
  // The options from the launch's command line and an update. Throws std::invalid_argument.
  std::function<LaunchOptions(const LaunchUpdate&)> reconsider = {};
  // Both set or both null: the exporter of the launch's metrics, which outlives the launch.
  Meters* meters = nullptr;
  MetricsAddress* metrics_address = nullptr;
};

// Prints the chief's results to standard output, and every line of every child to standard error
// after its name, "[worker:1] ...", with one live line of progress on a terminal. Returns the exit
// code: 0, the failed child's, 138 if one was killed, 130/143 on a signal. Throws Failure or
// std::system_error if the children cannot be started.
int run_launcher(const LaunchOptions& options);

}  // namespace disttf::roles
