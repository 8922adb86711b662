// disttf data inspect PATH: describes a user's own data and reports what looks wrong.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "data/own/own_data.h"
#include "main/commands/action.h"
#include "main/flags.h"
#include "roles/download/dataset_source.h"

namespace disttf {

void add_data_command_flags(CLI::App& app, Flags& flags);

// Takes the two words after `data`: inspect, and the path, which becomes the value of --data.
void take_data_words(std::vector<std::string>& arguments, Flags& flags);

// Opens the data, which `data.own` names, and prints what it is.
[[nodiscard]] std::unique_ptr<Action> inspect_data(roles::DataOptions data, bool as_json);

// The text to print, ending with a newline. Of a table: columns, classes and first rows. Of images:
// classes, and the first image in blocks. Both: what looks wrong.
[[nodiscard]] std::string data_text(const data::OpenedOwnData& data);
// The same as one JSON object.
[[nodiscard]] std::string data_json(const data::OpenedOwnData& data);

}  // namespace disttf
