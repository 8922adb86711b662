// Further flags of `disttf launch`: an options file of DC/OS' TensorFlow package, limits of each
// task, and the addresses at which the launch is managed.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "main/flags.h"
#include "net/resolvers/resolvers.h"
#include "roles/launch/shell/launcher.h"

namespace disttf {

void add_launch_resources(CLI::App& app, Flags& flags);

// --control, of launch and of the commands that manage it.
void add_control_flag(CLI::App& app, Flags& flags, const std::string& group,
                      const char* description);

// Returns the launch that the flags describe, without control addresses. `command`: the words after
// "--", which only --program has. Throws std::invalid_argument.
[[nodiscard]] roles::LaunchOptions launch_options(const CLI::App& app, const Flags& flags,
                                                  std::size_t ps, std::size_t workers,
                                                  const std::vector<std::string>& command);

// Throws std::invalid_argument if the launch's own program cannot be run.
void check_launched_program(const roles::LaunchOptions& options,
                            const net::Environment& environment);

// The launch that `words`, whose values are `flags`, `command`, and the options file that they name
// describe. The words win over the file. Throws std::invalid_argument.
[[nodiscard]] roles::LaunchOptions manageable_launch(const std::vector<std::string>& words,
                                                     const std::vector<std::string>& command,
                                                     const Flags& flags,
                                                     const net::Environment& environment);

// The directory of the control sockets of this user's launches.
[[nodiscard]] std::string control_directory(const net::Environment& environment);

}  // namespace disttf
