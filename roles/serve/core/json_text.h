// Writes JSON: appends values to a text. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace disttf::roles {

// Appends the shortest number that reads back as the same float32: "0.1", "3.0". Throws ApiError if
// the value is not finite.
void append_number(std::string& text, float value);
// "[1.0,2.0]"
void append_numbers(std::string& text, std::span<const float> values);
// "[[...],[...]]", `columns` in each. REQUIRES: columns > 0.
void append_rows(std::string& text, std::span<const float> values, std::size_t columns);
// Appends a quoted string. It reads back unchanged, control characters included; a byte that is not
// UTF-8 becomes "?".
void append_string(std::string& text, std::string_view value);

}  // namespace disttf::roles
