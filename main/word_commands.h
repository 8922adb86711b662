// Commands with positional words before their flags: predict RUN FILE, render TARGET, pods restart
// worker-1. None of them is a task of a cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "main/command_line.h"
#include "main/flags.h"

namespace disttf {

// Parses one of these commands; nullopt: `command` is another. `arguments` are the words after the
// command. Throws as parse_command_line() does.
[[nodiscard]] std::optional<Invocation> parse_word_command(
    Command command, const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace disttf
