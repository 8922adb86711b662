// The flags of `disttf launch` beside the counts: an options file of DC/OS' TensorFlow package,
// what each task may use, and where the launch is managed.
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

// --control, for launch and for who manages it.
void add_control_flag(CLI::App& app, Flags& flags, const std::string& group,
                      const char* description);

// The launch that the flags mean, with nobody to manage it. Throws std::invalid_argument.
[[nodiscard]] roles::LaunchOptions launch_options(const CLI::App& app, const Flags& flags,
                                                  std::size_t ps, std::size_t workers);

// The one that `words`, whose values are `flags`, mean together with the options file that they
// name. What the file says and the words do not is filled in. Throws std::invalid_argument.
[[nodiscard]] roles::LaunchOptions manageable_launch(const std::vector<std::string>& words,
                                                     const Flags& flags,
                                                     const net::Environment& environment);

// The directory in which the launches of this user have their control addresses.
[[nodiscard]] std::string control_directory(const net::Environment& environment);

}  // namespace disttf
