// The flags of launch alone: what it starts, how it is managed, and the tasks of a COMMAND.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "main/environment.h"
#include "main/flags/program.h"
#include "main/flags/run.h"
#include "roles/launch/core/gpu_assignment.h"
#include "roles/launch/shell/launcher.h"
#include "roles/launch/shell/program_launcher.h"
#include "run/process/log.h"

namespace disttf {

struct LaunchFlags {
  std::size_t ps = 1;
  std::size_t workers = 2;
  bool chief = false;
  bool evaluator = false;
  std::string restart = "on-failure";
  std::uint64_t max_restarts = 10;
  std::string chaos;         // empty: none
  std::string options_file;  // empty: none
  roles::TaskLimits ps_limits;
  roles::TaskLimits trainer_limits;
  std::string control;  // a path; empty: the usual one
  std::optional<std::uint16_t> control_port;
  // Launch of a COMMAND
  std::string worker_logs = "*";
  std::string initializer;  // empty: none
  std::string finalizer;
  std::optional<std::size_t> gpus_per_worker;  // nullopt: none are assigned
  bool share_gpus = false;

  void add_to(CLI::App& app);
  // Adds the flags that only a COMMAND takes, and the footer about it.
  void add_of_command(CLI::App& app);

  // All throw std::invalid_argument.

  // The GPUs of the workers, by the environment or the machine's drivers.
  [[nodiscard]] roles::GpuOptions gpu_options(const Environment& environment) const;
  // A launch of `command` as every task. Checks whether the programs exist.
  [[nodiscard]] roles::ProgramOptions program_options(const std::vector<std::string>& command,
                                                      const Environment& environment) const;
  // nullopt: the launch cannot be managed.
  [[nodiscard]] std::optional<roles::ControlOptions> control_options(
      const Environment& environment) const;
  void check_limits() const;
};

// Throws std::invalid_argument for a flag without effect: one of a COMMAND without a COMMAND, or
// another flag with one. With --program the COMMAND is a user's own program, which takes the flags
// of training.
void check_launch_flags(const CLI::App& app, const ProgramFlags& program, bool has_command);

// --control, of launch and of the commands that manage it.
void add_control_flag(CLI::App& app, std::string& control, const std::string& group,
                      const char* description);

// The launch of disttf's own tasks that flags describe: of `launch`, and of `train` without a
// cluster.
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
