// `disttf launch` of disttf's own tasks, which can be managed.
#pragma once

#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/launch/shell/launcher.h"

namespace disttf {

// Throws std::invalid_argument if --program and the other flags do not belong together.
void check_program_of_launch(const CLI::App& app, const ProgramFlags& program,
                             const LaunchFlags& launch, bool has_command);

// The launch that `words`, whose values are `flags`, `command`, and the options file that they name
// describe. The words win over the file. Throws std::invalid_argument.
[[nodiscard]] roles::LaunchOptions manageable_launch(const std::vector<std::string>& words,
                                                     const std::vector<std::string>& command,
                                                     const Flags& flags,
                                                     const net::Environment& environment);

}  // namespace disttf
