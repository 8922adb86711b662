// The flags of a user's own program that computes the gradients: `disttf worker --program --
// COMMAND`, of every command that trains.
//
// Pure functions.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "main/flags.h"

namespace disttf {

// The search path of shells where PATH is not set.
inline constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";

void add_program_flags(CLI::App& app, Flags& flags);
// The part of them that says how long a program may take.
void add_program_timeouts(CLI::App& app, Flags& flags, const char* group);

// Whether the command may have a COMMAND after "--".
[[nodiscard]] bool takes_command(Command command);

// Removes "--" and the words after it from the arguments. nullopt: there is no "--". Throws
// std::invalid_argument if no word follows.
[[nodiscard]] std::optional<std::vector<std::string>> take_launched_command(
    std::vector<std::string>& arguments, Command command);

// Throws std::invalid_argument with one sentence if --program and COMMAND do not belong together,
// or if a given flag has no effect on a user's program. A launch may have a COMMAND without
// --program (main/launch_command.h).
void check_program_flags(const CLI::App& app, const Flags& flags, Command command,
                         bool has_command);

// The flags of --program for each trainer of a launch. Empty without --program.
[[nodiscard]] std::vector<std::string> program_arguments(const Flags& flags);

}  // namespace disttf
