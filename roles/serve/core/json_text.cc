#include "roles/serve/core/json_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "net/wire/text.h"
#include "roles/serve/core/api_error.h"

namespace disttf::roles {

void append_number(std::string& text, float value) {
  if (!std::isfinite(value)) {
    throw ApiError(500, "what the model says of this is not a number");
  }
  std::array<char, 32> digits{};
  char* const end = fmt::format_to(digits.data(), "{}", value);
  const std::string_view shortest(digits.data(), static_cast<std::size_t>(end - digits.data()));
  text += shortest;
  if (shortest.find_first_of(".e") == std::string_view::npos) {
    text += ".0";  // for readers that tell whole numbers from others
  }
}

void append_numbers(std::string& text, std::span<const float> values) {
  text += '[';
  for (const float each : values) {
    append_number(text, each);
    text += ',';
  }
  text.back() = ']';
}

void append_rows(std::string& text, std::span<const float> values, std::size_t columns) {
  text += '[';
  for (std::size_t at = 0; at < values.size(); at += columns) {
    append_numbers(text, values.subspan(at, columns));
    text += ',';
  }
  text.back() = ']';
}

void append_string(std::string& text, std::string_view value) {
  text += '"';
  for (const char c : net::one_line(value)) {
    if (c == '"' || c == '\\') {
      text += '\\';
    }
    text += c;
  }
  text += '"';
}

}  // namespace disttf::roles
