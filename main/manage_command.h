// The words and flags of `disttf status`, `top`, `page`, `endpoints`, `logs`, `pods`, `update`.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "net/resolvers/resolvers.h"
#include "roles/launch/shell/manage.h"

namespace disttf {

// Whether the command sends a request to a running launch.
[[nodiscard]] bool is_management(Command command) noexcept;

void add_management_flags(CLI::App& app, Command command, Flags& flags);

// Removes the words after the command from the front of `arguments`: `logs TASK`, `pods restart
// TASK`. Throws std::invalid_argument.
[[nodiscard]] roles::ManageOptions take_management_words(Command command,
                                                         std::vector<std::string>& arguments);

// Sets what the flags say; reads the file of --options. Throws std::invalid_argument.
void complete(roles::ManageOptions& options, const Flags& flags,
              const net::Environment& environment);

}  // namespace disttf
