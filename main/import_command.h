// disttf import FILE --train_dir DIR: writes the first checkpoint of a run from a model's file.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/import/shell/import_command.h"

namespace disttf {

// Adds the flags of import, except those of training.
void add_import_flags(CLI::App& app, Flags& flags);

// Takes the word before the first flag, the file. Throws std::invalid_argument where it is missing.
[[nodiscard]] std::string take_import_word(std::vector<std::string>& arguments);

// `app` has parsed the flags. Throws std::invalid_argument if they contradict each other.
[[nodiscard]] roles::ImportOptions import_options(const std::string& file, const CLI::App& app,
                                                  const Flags& flags);

}  // namespace disttf
