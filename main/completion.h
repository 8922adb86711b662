// Completion of a partly typed command line, for the shells.
//
// `disttf completion SHELL` prints a script in which the shell calls `disttf __complete WORD...`
// for the candidates of the last WORD. The scripts contain no command and no flag, so they match
// whichever program they call. Commands and flags come from the flags' own tables, names of tasks
// from the running launches.
//
// Pure functions, except for calls of `running_tasks`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf {

// The hidden command's name.
inline constexpr std::string_view kCompleteCommand = "__complete";

// Returns the tasks, like "worker:1", of this user's running launches, or of the launch at `socket`
// if that is not empty. Must not throw.
using RunningTasks = std::function<std::vector<std::string>(const std::string& socket)>;

// Returns the candidates for the last of `words`, one per line: "WORD\tDESCRIPTION". After --flag=
// a candidate is the value alone. `words` follow the program's name; the last one is incomplete and
// may be empty. If a path is allowed, adds the line ":path" or ":directory". Throws
// std::invalid_argument for an unknown command.
[[nodiscard]] std::string complete_words(std::span<const std::string> words,
                                         const RunningTasks& running_tasks = {});

// The completion scripts of the shells; see completion.h.
struct CompletionScript {
  const char* shell;
  const char* text;
};
[[nodiscard]] std::span<const CompletionScript> completion_scripts();

}  // namespace disttf
