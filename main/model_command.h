// `disttf model show NAME`: describes a model as a table or as JSON.
//
// Pure functions. Throw std::invalid_argument with one sentence if the words, a flag or the model
// are wrong.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "math/model_spec.h"

namespace disttf {

// Adds the flags, and the positional words for --help.
void add_model_flags(CLI::App& app, Flags& flags);

// Parses the value of --input: "28x28x1", "28x28" for one channel, or "100" for so many numbers.
[[nodiscard]] math::Shape shape_from_text(const std::string& text);

// Takes the two words after `model`: show, and the name.
[[nodiscard]] math::ModelSpec take_model_words(std::vector<std::string>& arguments);

// The text to print, which ends with a newline.
[[nodiscard]] std::string model_text(math::ModelSpec spec, const Flags& flags);

}  // namespace disttf
