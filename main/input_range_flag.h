// --input_range of serve and predict.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "roles/predict/core/input_range.h"

namespace disttf {

void add_input_range_flag(CLI::App& app, std::string& value, const char* group);
// REQUIRES: the flag's check has accepted `value`.
[[nodiscard]] roles::InputRange input_range_from(const std::string& value);

}  // namespace disttf
