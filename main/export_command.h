// disttf export MODEL --format F: writes a trained model for other programs.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "roles/export/shell/export_command.h"

namespace disttf {

void add_export_flags(CLI::App& app, Flags& flags);

// Takes the word before the first flag, the model. Throws std::invalid_argument if it is missing.
[[nodiscard]] std::string take_export_word(std::vector<std::string>& arguments);

// `data` is the data set that --dataset or --data names, if any. Throws std::invalid_argument if
// the format is missing.
[[nodiscard]] roles::ExportOptions export_options(const std::string& model, const Flags& flags,
                                                  roles::DataOptions data);

}  // namespace disttf
