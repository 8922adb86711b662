#include "roles/serve/core/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "roles/serve/core/api_error.h"
#include "text/shown_text.h"

namespace disttf::roles {
namespace {

// Appends the digits times ten to the exponent.
void append_digits(std::string& text, std::string_view digits, int exponent) {
  constexpr int kMostZeros = 4;  // 0.0001, and 1e-05
  constexpr int kMostWhole = 16;
  const int count = static_cast<int>(digits.size());
  const int point = count + exponent;  // the number of digits before the point
  if (point > kMostWhole || point <= -kMostZeros) {
    text += digits[0];
    text += '.';
    text += count > 1 ? digits.substr(1) : "0";
    text += 'e';
    text += std::to_string(point - 1);
  } else if (point <= 0) {
    text += "0.";
    text.append(static_cast<std::size_t>(-point), '0');
    text += digits;
  } else if (point >= count) {
    text += digits;
    text.append(static_cast<std::size_t>(point - count), '0');
    text += ".0";  // for readers that distinguish whole numbers
  } else {
    text += digits.substr(0, static_cast<std::size_t>(point));
    text += '.';
    text += digits.substr(static_cast<std::size_t>(point));
  }
}

}  // namespace

// Uses only fmt's search for the digits: its full formatting would add a second, speed-optimized
// copy.
void append_number(std::string& text, float value) {
  if (!std::isfinite(value)) {
    throw ApiError(500, "the model's output is not finite");
  }
  if (std::signbit(value)) {
    text += '-';
  }
  if (value == 0) {
    text += "0.0";
    return;
  }
  // The shortest digits that read back as the same float.
  const auto decimal = fmt::detail::dragonbox::to_decimal(std::fabs(value));
  std::array<char, 10> buffer{};  // a float32 has nine digits at most
  const char* const last =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), decimal.significand).ptr;
  append_digits(text, {buffer.data(), last}, decimal.exponent);
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
