// Command lines that are being typed, for the shells' completion.
//
// `disttf completion SHELL` prints a script in which the shell asks `disttf __complete WORD...`
// what may stand in the place of the last WORD: so the scripts know no command and no flag, and
// what is offered is what the file that is called takes. Nothing but the flags' own tables tells
// it.
//
// Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf {

// The hidden command's name.
inline constexpr std::string_view kCompleteCommand = "__complete";

// `words`: those behind the program's name, the last one, which may be empty, not yet complete.
// What fits it, a line each, "WORD\tWHAT IT IS"; behind --flag= the value alone. Where a path may
// stand, one more line: ":path", or ":directory". Throws std::invalid_argument for an unknown
// command.
[[nodiscard]] std::string complete_words(std::span<const std::string> words);

// bash, zsh, fish.
[[nodiscard]] std::vector<std::string> completion_shells();

// The word behind `completion`, taken out of the arguments, as the script of that shell. Throws
// std::invalid_argument with one sentence.
[[nodiscard]] std::string take_completion_word(std::vector<std::string>& arguments);

}  // namespace disttf
