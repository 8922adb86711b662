#include "net/wire/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace disttf::net {
namespace {

[[nodiscard]] std::uint8_t byte_at(std::string_view text, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(text[at]);
}

// How long the UTF-8 character at the start of `text` is; 0 when none is (a stray or overlong
// byte, a surrogate, a character cut short). Ranges: RFC 3629, section 4.
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept {
  struct Form {
    std::uint8_t first_low, first_high;    // the first byte
    std::uint8_t second_low, second_high;  // the second; later ones are 0x80..0xBF
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

// Whether the UTF-8 character at the start of `text` is U+0000..U+001F or U+007F..U+009F:
// terminals take some of them for commands.
[[nodiscard]] bool is_control(std::string_view text) noexcept {
  const std::uint8_t first = byte_at(text, 0);
  return first < 0x20 || first == 0x7F || (first == 0xC2 && byte_at(text, 1) < 0xA0);
}

void append_escaped(std::string& out, char character) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<std::uint8_t>(character);
  switch (character) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '"':
    case '\\':
      out += '\\';
      out += character;
      return;
    default:
      break;
  }
  if (byte >= 0x20 && byte < 0x7F) {
    out += character;
  } else {
    out += "\\x";
    out += kHex[byte >> 4U];
    out += kHex[byte & 0x0FU];
  }
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  static constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char character : text.substr(0, kMaxShownBytes)) append_escaped(out, character);
  out += text.size() > kMaxShownBytes ? "\"..." : "\"";
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += '?';
    } else if (is_control(text)) {
      out += ' ';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string_view cut_utf8(std::string_view text, std::size_t max_bytes) noexcept {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  // A character's later bytes are 10xxxxxx: go back to its first one.
  while (end > 0 && (byte_at(text, end) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

}  // namespace disttf::net
