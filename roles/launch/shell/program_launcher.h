// Launch of any program: it runs as every task of a cluster on this machine, and gets its role in
// its words and its environment (roles/launch/shell/program_command.h). TFMesos' replica mode,
// without Mesos.
//
// The run is done when every worker has ended with 0. Programs of ps tasks, which rarely end by
// themselves, then get SIGTERM. The first task that fails ends all others, and its exit code is the
// launcher's. Nothing is restarted. Each task is a process group, so its descendants end with it.
//
// The launcher keeps each task's port bound, with SO_REUSEADDR and not listening, as TFMesos does,
// so that no other process gets it. A program must set SO_REUSEADDR before it binds, as servers do.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/wire/cluster.h"
#include "roles/launch/core/gpu_assignment.h"
#include "roles/launch/shell/run_secret.h"

namespace disttf::roles {

struct ProgramOptions {
  std::size_t ps = 1;
  std::size_t workers = 2;
  // Words, with placeholders. In each task the initializer runs before the command, which does not
  // start if it fails, and the finalizer after the command, whatever its exit code.
  std::vector<std::string> command;
  std::vector<std::string> initializer;  // empty: none
  std::vector<std::string> finalizer;    // empty: none
  // The workers whose lines are shown; nullopt: the lines of all tasks, also of ps. The last lines
  // of a failed task are always shown.
  std::optional<std::set<std::size_t>> worker_logs;
  std::string search_path;  // PATH
  SecretOfRun secret = SecretOfRun::kGiven;
  GpuOptions gpus = {};  // of the workers
};

// Throws std::invalid_argument, with one sentence, if a word has a wrong placeholder or names a
// missing program: run_program_launcher() would throw the same.
void validate(const ProgramOptions& options);

// Prints the lines of the tasks, after their names, "[worker:1] ...", to standard output and
// standard error. Returns the exit code: 0, the failed task's, 128 + N if signal N killed it,
// 130/143 on a signal. Throws std::system_error if a task cannot be started.
int run_program_launcher(const ProgramOptions& options);

}  // namespace disttf::roles
