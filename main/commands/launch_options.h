// The launch of disttf's own tasks that flags describe: of `launch`, and of `train` without a
// cluster.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "main/commands/launch_flags.h"
#include "main/environment.h"
#include "main/flags/program.h"
#include "main/flags/run.h"
#include "roles/launch/shell/launcher.h"
#include "run/process/log.h"

namespace disttf {

struct LaunchedFlags {
  const LaunchFlags& launch;
  const RunFlags& run;
  const ProgramFlags& program;
};

// Returns the launch of `ps` parameter servers and `workers` workers, without control addresses.
// `app` has parsed the flags. `command`: the words after "--", which only --program has. Throws
// std::invalid_argument.
[[nodiscard]] roles::LaunchOptions launch_options(const CLI::App& app, const LaunchedFlags& flags,
                                                  std::size_t ps, std::size_t workers,
                                                  const std::vector<std::string>& command);

// A JSON line has the task's name in a field; launch's text lines carry it in the message.
void log_as_launch(roles::LogOptions& log);

// Throws std::invalid_argument if the launch's own program cannot be run.
void check_launched_program(const roles::LaunchOptions& options, const Environment& environment);

}  // namespace disttf
