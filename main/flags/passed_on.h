// The given flags as arguments for tasks, for the commands that start or render them.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace disttf {

// The given options as arguments for tasks: "--train_steps=100".
[[nodiscard]] std::vector<std::string> arguments_for_children(const CLI::App& app);
// The same for the processes that a server starts; the driver sets their timeouts.
[[nodiscard]] std::vector<std::string> arguments_for_tasks(const CLI::App& app);

}  // namespace disttf
