// The positional words of a command line: the command, and the words that it takes before its
// flags.
//
// Each function takes its words out of `arguments`. Throws std::invalid_argument with one sentence
// if they are malformed. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/checkpoint/shell/checkpoint_command.h"

namespace disttf {

// The output of `disttf --help`.
[[nodiscard]] std::string top_level_help();

// The output of `disttf help WORD...`: the help of the command that the first word names; without
// words the general help. Ignores further words, as in `help pods restart`. Throws
// std::invalid_argument for an unknown command.
[[nodiscard]] std::string help_of(std::span<const std::string> words);

// The command. Flags without a command mean train.
[[nodiscard]] Command take_command(std::vector<std::string>& arguments);

// The two words after `checkpoint`: the action and the directory.
[[nodiscard]] roles::CheckpointCommand take_checkpoint_words(std::vector<std::string>& arguments);

// The word after `resolve` that names a task's command; train if there is none. --print and --json
// may precede it.
[[nodiscard]] Command take_resolve_word(std::vector<std::string>& arguments);

}  // namespace disttf
