#include "roles/serve/core/json_writer.h"

#include <algorithm>
#include <cmath>

#include "roles/serve/core/api_error.h"
#include "text/shortest_number.h"
#include "text/shown_text.h"

namespace disttf::roles {

void append_number(std::string& text, float value) {
  if (!std::isfinite(value)) {
    throw ApiError(500, "the model's output is not finite");
  }
  const std::size_t before = text.size();
  append_shortest(text, value);
  if (text.find_first_of(".e", before) == std::string::npos) {
    text += ".0";  // for readers that distinguish whole numbers
  }
}

void append_numbers(std::string& text, std::span<const float> values) {
  text += '[';
  for (const float each : values) {
    append_number(text, each);
    text += ',';
  }
  // Replaces the last comma. Without values it would replace the bracket.
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
  constexpr std::string_view kHex = "0123456789abcdef";
  text += '"';
  while (!value.empty()) {
    const ShownCharacter character = first_character(value);
    // An invalid byte has length 0; one byte is skipped, so the loop always advances.
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes == 0) {
      text += '?';
    } else if (character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0)) {
      text += "\\u00";
      text += kHex[character.code >> 4U];
      text += kHex[character.code & 0xFU];
    } else {
      if (character.code == '"' || character.code == '\\') {
        text += '\\';
      }
      text += value.substr(0, bytes);
    }
    value.remove_prefix(bytes);
  }
  text += '"';
}

}  // namespace disttf::roles
