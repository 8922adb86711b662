// `disttf model show NAME`: what a model consists of, as a table or as JSON.
//
// Pure functions. Throw std::invalid_argument with one sentence where the words, a flag or the
// model are not what they should be.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "math/model_spec.h"

namespace disttf {

// The flags behind the words, for the help and for reading.
void add_model_flags(CLI::App& app, Flags& flags);

// "28x28x1", or "28x28" for one channel, or "100" for so many numbers: the value of --input.
[[nodiscard]] math::Shape shape_from_text(const std::string& text);

// The two words behind `model`: show, and the name.
[[nodiscard]] math::ModelSpec take_model_words(std::vector<std::string>& arguments);

// What to print, which ends with a newline.
[[nodiscard]] std::string model_text(math::ModelSpec spec, const Flags& flags);

}  // namespace disttf
