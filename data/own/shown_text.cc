#include "data/own/shown_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace disttf::data {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(text[at]);
}

std::string hex(std::uint32_t number, std::size_t digits) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; number >>= 4U) text[i] = kHex[number & 0xFU];
  return text;
}

// REQUIRES: `character` is one character of UTF-8.
std::uint32_t code_point(std::string_view character) noexcept {
  const std::uint8_t first = byte_at(character, 0);
  std::uint32_t code = character.size() == 1   ? first
                       : character.size() == 2 ? first & 0x1FU
                       : character.size() == 3 ? first & 0x0FU
                                               : first & 0x07U;
  for (std::size_t i = 1; i < character.size(); ++i) {
    code = code << 6U | (byte_at(character, i) & 0x3FU);
  }
  return code;
}

// Characters that change the direction of what follows, end a line, or have no width.
bool misleads(std::uint32_t code) noexcept {
  return code == 0x061C || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
}

void append_control(std::string& out, std::uint32_t code) {
  switch (code) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\x" + hex(code, 2);
  }
}

}  // namespace

std::size_t utf8_character(std::string_view text) noexcept {
  struct Form {
    std::uint8_t first_low, first_high;    // of the first byte
    std::uint8_t second_low, second_high;  // of the second; later ones are 0x80 to 0xBF
    std::size_t length;
  };
  static constexpr std::array kForms{
      Form{0xC2, 0xDF, 0x80, 0xBF, 2}, Form{0xE0, 0xE0, 0xA0, 0xBF, 3},
      Form{0xE1, 0xEC, 0x80, 0xBF, 3}, Form{0xED, 0xED, 0x80, 0x9F, 3},
      Form{0xEE, 0xEF, 0x80, 0xBF, 3}, Form{0xF0, 0xF0, 0x90, 0xBF, 4},
      Form{0xF1, 0xF3, 0x80, 0xBF, 4}, Form{0xF4, 0xF4, 0x80, 0x8F, 4}};
  const std::uint8_t first = byte_at(text, 0);
  if (first < 0x80) return 1;
  for (const Form& form : kForms) {
    if (first < form.first_low || first > form.first_high) continue;
    if (text.size() < form.length) return 0;
    if (byte_at(text, 1) < form.second_low || byte_at(text, 1) > form.second_high) return 0;
    for (std::size_t i = 2; i < form.length; ++i) {
      if ((byte_at(text, i) & 0xC0U) != 0x80U) return 0;
    }
    return form.length;
  }
  return 0;
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_character(text);
    if (length == 0) {
      out += "\\x" + hex(byte_at(text, 0), 2);
      text.remove_prefix(1);
      continue;
    }
    const std::uint32_t code = code_point(text.substr(0, length));
    if (code < 0x20 || (code >= 0x7F && code < 0xA0)) {
      append_control(out, code);
    } else if (misleads(code)) {
      out += "\\u{" + hex(code, 4) + "}";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::size_t length = std::min(text.size(), kMost);
  const auto is_inside = [&](std::size_t at) {  // of a character of UTF-8
    return at < text.size() && (byte_at(text, at) & 0xC0U) == 0x80U;
  };
  // Of bytes that are no UTF-8 as many may follow each other.
  constexpr std::size_t kMostBack = 3;
  for (std::size_t back = 0; back < kMostBack && length > 0 && is_inside(length); ++back) --length;
  return escaped(text.substr(0, length)) + (text.size() > length ? "..." : "");
}

}  // namespace disttf::data
