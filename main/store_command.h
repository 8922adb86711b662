// `disttf ls PLACE` and `disttf cp FROM TO`: their words and flags.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/store/shell/store_command.h"

namespace disttf {

void add_ls_flags(CLI::App& app, Flags& flags);
void add_cp_flags(CLI::App& app, Flags& flags);

// Removes the words after the command from the front of `arguments`. Throws std::invalid_argument
// if they are missing, or name an unknown store.
[[nodiscard]] std::string take_ls_word(std::vector<std::string>& arguments);
[[nodiscard]] roles::CopyCommand take_cp_words(std::vector<std::string>& arguments);

}  // namespace disttf
