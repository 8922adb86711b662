// Command lines that are being typed, for the shells' completion.
//
// `disttf completion SHELL` prints a script in which the shell asks `disttf __complete WORD...`
// what may stand in the place of the last WORD: so the scripts know no command and no flag, and
// what is offered is what the file that is called takes. Commands and flags come from the flags'
// own tables, the names of tasks from the launches that run.
//
// Pure functions, but for what `running_tasks` does.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf {

// The hidden command's name.
inline constexpr std::string_view kCompleteCommand = "__complete";

// The tasks of the launches that this user has running, of the one at the socket where that is not
// empty: "worker:1". Must not throw.
using RunningTasks = std::function<std::vector<std::string>(const std::string& socket)>;

// `words`: those behind the program's name, the last one, which may be empty, not yet complete.
// What fits it, a line each, "WORD\tWHAT IT IS"; behind --flag= the value alone. Where a path may
// stand, one more line: ":path", or ":directory". Throws std::invalid_argument for an unknown
// command.
[[nodiscard]] std::string complete_words(std::span<const std::string> words,
                                         const RunningTasks& running_tasks = {});

// bash, zsh, fish.
[[nodiscard]] std::vector<std::string> completion_shells();

// The word behind `completion`, taken out of the arguments, as the script of that shell. Throws
// std::invalid_argument with one sentence.
[[nodiscard]] std::string take_completion_word(std::vector<std::string>& arguments);

}  // namespace disttf
