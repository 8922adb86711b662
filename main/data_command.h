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

// What is printed, which ends with a newline; `first` are rows of those that are trained on.
[[nodiscard]] std::string data_text(const data::OwnData& data, const data::Split& first);
// The same of images, with the first one in blocks.
[[nodiscard]] std::string image_data_text(const data::Dataset& dataset);
// One JSON object.
[[nodiscard]] std::string data_json(const data::OwnData& data);
[[nodiscard]] std::string image_data_json(const data::Dataset& dataset);

// What a person should look at: a sentence each.
[[nodiscard]] std::vector<std::string> what_looks_wrong(const data::CacheIndex& index);
// The same of images.
[[nodiscard]] std::vector<std::string> what_looks_wrong(const data::Dataset& dataset);

}  // namespace disttf
