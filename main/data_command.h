// disttf data inspect PATH: what a user's own data consists of, and what looks wrong with it.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "data/own/own_data.h"
#include "main/flags.h"

namespace disttf {

void add_data_command_flags(CLI::App& app, Flags& flags);

// The two words behind `data`, inspect and the path, which becomes --data's.
void take_data_words(std::vector<std::string>& arguments, Flags& flags);

// What is printed, which ends with a newline: of a table its columns, classes and first rows, of
// images their classes and the first one in blocks; and what looks wrong.
[[nodiscard]] std::string data_text(const data::OpenedOwnData& data);
// One JSON object.
[[nodiscard]] std::string data_json(const data::OpenedOwnData& data);

}  // namespace disttf
