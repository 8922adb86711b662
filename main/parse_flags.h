// Words of a command line -> the values of one command's flags.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <span>
#include <string>

namespace disttf {

// Parses the words, and the file that --config names, into the variables of the app's options.
// Returns the help text if it is asked for, and then sets nothing. Throws std::invalid_argument
// with one sentence: the flag, its value, what is allowed.
[[nodiscard]] std::optional<std::string> parse_flags(CLI::App& app,
                                                     std::span<const std::string> arguments);

}  // namespace disttf
