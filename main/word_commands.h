// Commands that are told in words what they are about, before their flags: predict RUN FILE, render
// TARGET, pods restart worker-1. None of them is a task of a cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "main/command_line.h"
#include "main/flags.h"

namespace disttf {

// nullopt: the command is none of them. `arguments`: what follows it. Throws as
// parse_command_line() does.
[[nodiscard]] std::optional<Invocation> parse_word_command(
    Command command, const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace disttf
