// `disttf plot RUN...` and `disttf show RUN`: their words and flags.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "main/commands/action.h"
#include "main/flags.h"
#include "net/resolvers/resolvers.h"
#include "roles/monitor/shell/plot_command.h"

namespace disttf {

void add_plot_flags(CLI::App& app, Flags& flags);
void add_show_flags(CLI::App& app, Flags& flags);

// Removes the words after `command`, plot or show, from the front of `arguments`, and returns them:
// the runs. Throws std::invalid_argument if there is none, or too many.
[[nodiscard]] std::vector<std::string> take_runs(Command command,
                                                 std::vector<std::string>& arguments);

// Both throw std::invalid_argument.
[[nodiscard]] roles::PlotOptions plot_options(std::vector<std::string> runs, const Flags& flags,
                                              const net::Environment& environment);
[[nodiscard]] roles::ShowOptions show_options(std::vector<std::string> runs, const Flags& flags,
                                              const net::Environment& environment);

[[nodiscard]] std::unique_ptr<Action> show_runs(roles::ShowOptions options);

}  // namespace disttf
