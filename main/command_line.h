// argv and the environment -> a checked action; or a text to print and an exit code.
#pragma once

#include <span>
#include <string>

#include "main/commands/command.h"
#include "main/environment.h"

namespace disttf {

// `arguments`: argv without the program's name. Throws std::invalid_argument: the flag, its value,
// what is allowed.
[[nodiscard]] Invocation parse_command_line(std::span<const std::string> arguments,
                                            const Environment& environment);

}  // namespace disttf
