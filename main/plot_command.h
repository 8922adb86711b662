// `disttf plot RUN...` and `disttf show DIR`: their words and flags.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "net/resolvers/resolvers.h"
#include "roles/monitor/shell/plot_command.h"

namespace disttf {

void add_plot_flags(CLI::App& app, Flags& flags);
void add_show_flags(CLI::App& app, Flags& flags);

// The words behind the command are taken off the front of `arguments`: the runs, or the one
// directory. Throw std::invalid_argument where they are missing.
[[nodiscard]] std::vector<std::string> take_runs(std::vector<std::string>& arguments);
[[nodiscard]] std::string take_shown_directory(std::vector<std::string>& arguments);

// Throws std::invalid_argument.
[[nodiscard]] roles::PlotOptions plot_options(std::vector<std::string> runs, const Flags& flags,
                                              const net::Environment& environment);

// What the environment says of the terminal.
[[nodiscard]] roles::TerminalVariables terminal_variables(const net::Environment& environment);
// The names of the variables that it reads.
inline constexpr const char* kTerminalVariables[] = {"COLUMNS", "LINES",    "TERM", "NO_COLOR",
                                                     "LC_ALL",  "LC_CTYPE", "LANG"};

}  // namespace disttf
