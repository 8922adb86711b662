// Words of a command line -> the values of one command's flags.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// The spellings of flags: tutorials and orchestrators write them in several ways, CLI11 reads one.
//
//   --task-index=1     --task_index=1       hyphens for underscores
//   --sync_replicas True                    a flag's value as a word of its own
//   --sync_replicas=False                   Python's booleans
//
// Pure functions.

// "true" or "false" for true, 1, yes, on, false, 0, no, off in any letter case; else nullopt.
[[nodiscard]] std::optional<std::string> as_boolean(std::string_view word);

// `is_flag`: whether "--name" is a boolean flag (it takes no value word of its own in CLI11).
[[nodiscard]] std::vector<std::string> normalize_arguments(
    std::span<const std::string> arguments, const std::function<bool(std::string_view)>& is_flag);

}  // namespace disttf
