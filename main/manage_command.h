// `disttf status`, `top`, `page`, `endpoints`, `logs`, `pods`, `update`: their words and flags.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "net/resolvers/resolvers.h"
#include "roles/launch/shell/manage.h"

namespace disttf {

// Whether the command speaks to a running launch.
[[nodiscard]] bool is_management(Command command) noexcept;

void add_management_flags(CLI::App& app, Command command, Flags& flags);

// Takes the words behind the command off the front of `arguments`: `logs TASK`, `pods restart
// TASK`. Throws std::invalid_argument.
[[nodiscard]] roles::ManageOptions take_management_words(Command command,
                                                         std::vector<std::string>& arguments);

// Fills in what the flags say; reads the file that --options names. Throws std::invalid_argument.
void complete(roles::ManageOptions& options, const Flags& flags,
              const net::Environment& environment);

}  // namespace disttf
