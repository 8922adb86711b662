// Words of a command line -> the values of one command's flags.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace disttf {

// Parses the words, and the file that --config names, into the variables of the app's options.
// Returns the help text if it is asked for, and then sets nothing. Throws std::invalid_argument
// with one sentence: the flag, its value, what is allowed.
[[nodiscard]] std::optional<std::string> parse_flags(CLI::App& app,
                                                     std::span<const std::string> arguments);

// Returns the arguments with the positional words before the flags, each in their order. A flag
// keeps its values. What follows a flag that the app does not have, or --, stays where it is.
[[nodiscard]] std::vector<std::string> words_first(const CLI::App& app,
                                                   std::span<const std::string> arguments);

}  // namespace disttf
