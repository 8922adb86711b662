// The words of a command line that are no flags: which command, and what it takes before its flags.
//
// Each takes its words out of `arguments`, and throws std::invalid_argument with one sentence where
// they are not what they should be. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/checkpoint/shell/checkpoint_command.h"

namespace disttf {

// What `disttf --help` prints.
[[nodiscard]] std::string top_level_help();

// What `disttf help WORD...` prints: the help of the command that the first word names, and without
// words that of all. Words behind it, as in `help pods restart`, are ignored. Throws
// std::invalid_argument where it is no command.
[[nodiscard]] std::string help_of(std::span<const std::string> words);

// The command's name; flags without one mean train.
[[nodiscard]] Command take_command(std::vector<std::string>& arguments);

// The two words behind `checkpoint`: what to do, and the directory.
[[nodiscard]] roles::CheckpointCommand take_checkpoint_words(std::vector<std::string>& arguments);

// The word behind `resolve` that names a task's command, train without one; --print and --json may
// stand before it.
[[nodiscard]] Command take_resolve_word(std::vector<std::string>& arguments);

}  // namespace disttf
