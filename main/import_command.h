// disttf import FILE --train_dir DIR: what a run begins with that fine-tunes somebody else's model.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/import/shell/import_command.h"

namespace disttf {

// All but those of training.
void add_import_flags(CLI::App& app, Flags& flags);

// Takes the word before the first flag, the file. Throws std::invalid_argument where it is missing.
[[nodiscard]] std::string take_import_word(std::vector<std::string>& arguments);

// `app`: that has read the flags. Throws std::invalid_argument where they make no sense.
[[nodiscard]] roles::ImportOptions import_options(const std::string& file, const CLI::App& app,
                                                  const Flags& flags);

}  // namespace disttf
