// argv and the environment -> a checked action; or a text to print and an exit code.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "main/commands/command.h"
#include "main/environment.h"

namespace disttf {

// `arguments`: argv without the program's name. Throws std::invalid_argument: the flag, its value,
// what is allowed.
[[nodiscard]] Invocation parse_command_line(std::span<const std::string> arguments,
                                            const Environment& environment);

// Runs a command line, from its words to the exit code.

// `arguments`: without the program's name. Logs errors as sentences and throws nothing. REQUIRES:
// no second thread runs yet.
[[nodiscard]] int run_command_line(const std::vector<std::string>& arguments);

}  // namespace disttf
