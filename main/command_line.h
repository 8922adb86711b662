// argv and the environment -> a checked action; or a text to print and an exit code.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "main/commands/action.h"
#include "main/environment.h"
#include "roles/process/attempt.h"
#include "roles/process/log.h"

namespace disttf {

struct Invocation {
  roles::LogOptions log;
  std::vector<std::string> warnings;     // logged once the log is set up
  std::string summary;                   // logged likewise, at level info; empty: none
  bool confines = true;                  // --confine
  std::vector<roles::Attempt> attempts;  // --debug_attempts, of an action with a sandbox
  std::unique_ptr<Action> action;
};

// `arguments`: argv without the program's name. Throws std::invalid_argument: the flag, its value,
// what is allowed.
[[nodiscard]] Invocation parse_command_line(std::span<const std::string> arguments,
                                            const Environment& environment);

}  // namespace disttf
