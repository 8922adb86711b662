// What a model gets: the shape of an example, and the range of pixel values.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "math/model_spec.h"
#include "model/predict/input_range.h"

namespace disttf {

// Parses the value of --input: "28x28x1", "28x28" for one channel, or "100" for so many numbers.
// Throws std::invalid_argument.
[[nodiscard]] math::Shape shape_from_text(const std::string& text);

// --input_range of serve and predict.
void add_input_range_flag(CLI::App& app, std::string& value, const char* group);
// REQUIRES: the flag's check has accepted `value`.
[[nodiscard]] roles::InputRange input_range_from(const std::string& value);

}  // namespace disttf
