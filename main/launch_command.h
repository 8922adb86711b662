// `disttf launch [FLAGS] -- COMMAND [WORD...]`: the words of a program that is run as a cluster.
//
// Pure functions, but for the look whether the programs are there.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/launch/shell/replica_launcher.h"

namespace disttf {

// The flags that are a COMMAND's own.
void add_launch_of_a_command(CLI::App& app, Flags& flags);

// Takes the words behind "--", and that, off the end of `arguments`; nullopt: there is no "--".
[[nodiscard]] std::optional<std::vector<std::string>> take_launched_command(
    std::vector<std::string>& arguments);

// Throws std::invalid_argument when a flag was given that has no effect: one of a COMMAND's where
// there is none, another where there is one.
void check_launch_flags(const CLI::App& app, bool has_command);

// `search_path`: PATH, empty when it is not set. Throws std::invalid_argument.
[[nodiscard]] roles::ReplicaOptions replica_options(const Flags& flags,
                                                    const std::vector<std::string>& command,
                                                    const std::string& search_path);

}  // namespace disttf
