// The launch role: a whole cluster on this machine, as real processes of this same file.
//
// Every child gets its listening socket already open, so no port is guessed or raced for. Children
// are in process groups of their own (a Ctrl-C reaches them through the launcher, once) and are
// killed by the kernel when the launcher dies, however it dies. A child that was killed, or lost
// its peers, is started again on the same port as the restart policy allows. One that fails for
// good ends the run: the others are stopped, and its exit code is the launcher's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "roles/launch/fault_plan.h"
#include "roles/launch/restart_policy.h"

namespace disttf::roles {

struct LaunchOptions {
  std::size_t ps = 1;
  std::size_t workers = 2;
  bool chief = false;  // a chief task of its own instead of worker 0
  RestartOptions restart;
  std::optional<ChaosOptions> chaos;  // launch kills and freezes its children itself
  // What every child gets besides who it is: "--train_steps=100", ...
  std::vector<std::string> task_arguments;
};

// Standard output: the chief's results, as they are. Standard error: every line of every child
// behind its name, "[worker:1] ...", and on a terminal one live line of progress.
// Returns the exit code: 0, the failed child's, 138 when one was killed, 130/143 on a signal.
// Throws Failure or std::system_error when the children cannot be started.
int run_launcher(const LaunchOptions& options);

}  // namespace disttf::roles
