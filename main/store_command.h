// `disttf ls PLACE` and `disttf cp FROM TO`: their words and flags.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/common_options.h"
#include "main/flags.h"
#include "roles/store/shell/store_command.h"
#include "roles/store/shell/store_environment.h"

namespace disttf {

void add_ls_flags(CLI::App& app, Flags& flags);
void add_cp_flags(CLI::App& app, Flags& flags);

// The words behind the command are taken off the front of `arguments`. Throw std::invalid_argument
// where they are missing, or name a store that is none.
[[nodiscard]] std::string take_ls_word(std::vector<std::string>& arguments);
[[nodiscard]] roles::CopyCommand take_cp_words(std::vector<std::string>& arguments);

// What stores are told of the environment.
[[nodiscard]] roles::StoreEnvironment store_environment(const Environment& environment);

}  // namespace disttf
