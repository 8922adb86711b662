// --input_range, of what serve and predict are asked.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "roles/predict/core/input_range.h"

namespace disttf {

void add_input_range_flag(CLI::App& app, std::string& value, const char* group);
// REQUIRES: the flag has taken it.
[[nodiscard]] roles::InputRange input_range_from(const std::string& value);

}  // namespace disttf
