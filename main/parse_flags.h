// Words of a command line -> the values of one command's flags.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <span>
#include <string>

namespace disttf {

// Fills what the app's options point to, from the words and the file that --config names. Returns
// the help text when it was asked for; then nothing is filled. Throws std::invalid_argument with
// one sentence: the flag, its value, what is allowed.
[[nodiscard]] std::optional<std::string> parse_flags(CLI::App& app,
                                                     std::span<const std::string> arguments);

}  // namespace disttf
