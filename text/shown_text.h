// Makes external text safe to show: names of files and columns, messages of peers and servers, the
// environment. Shown text must not end a line, move a terminal's cursor or reorder what a person
// reads. All modules may include this header, so there is one table of characters.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace disttf {

// The UTF-8 character at the start of a text.
struct ShownCharacter {
  std::size_t bytes = 0;  // 0: the first byte starts no character (RFC 3629, section 4)
  char32_t code = 0;
  // False for control characters (U+0000 to U+001F, U+007F to U+009F), line separators (U+2028,
  // U+2029), characters that change the text direction or have no width (U+061C, U+200B, U+200E,
  // U+200F, U+202A to U+202E, U+2060 to U+206F, U+FEFF), and for a byte that is not a character.
  bool is_safe = false;
};

[[nodiscard]] inline bool is_safe_to_show(char32_t code) noexcept {
  const auto is_between = [code](char32_t first, char32_t last) {
    return first <= code && code <= last;
  };
  return !(code < 0x20 || is_between(0x7F, 0x9F) || code == 0x200B || is_between(0x200E, 0x200F) ||
           is_between(0x2028, 0x202E) || is_between(0x2060, 0x206F) || code == 0x061C ||
           code == 0xFEFF);
}

// Decodes the first character. REQUIRES: `text` is not empty.
[[nodiscard]] inline ShownCharacter first_character(std::string_view text) noexcept {
  const auto first = static_cast<std::uint8_t>(text.front());
  if (first < 0x80) return {.bytes = 1, .code = first, .is_safe = is_safe_to_show(first)};
  const std::size_t bytes = first < 0xC2   ? 0
                            : first < 0xE0 ? 2
                            : first < 0xF0 ? 3
                            : first < 0xF5 ? 4
                                           : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  char32_t code = first & (0x7FU >> bytes);
  for (const char each : text.substr(1, bytes - 1)) {
    const auto byte = static_cast<std::uint8_t>(each);
    if ((byte & 0xC0U) != 0x80U) return {};
    code = code << 6U | (byte & 0x3FU);
  }
  const bool is_overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  if (is_overlong || code > 0x10FFFF || (0xD800 <= code && code <= 0xDFFF)) return {};
  return {.bytes = bytes, .code = code, .is_safe = is_safe_to_show(code)};
}

// Appends a code point of at most U+10FFFF in UTF-8.
inline void append_utf8(std::string& out, char32_t code) {
  const unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  // The first byte begins with as many 1s as there are bytes, the others with 10.
  out += static_cast<char>((more == 0 ? 0 : 0xF0U << (3 - more)) | code >> (6 * more));
  for (unsigned i = more; i-- > 0;) out += static_cast<char>(0x80U | (code >> (6 * i) & 0x3FU));
}

// Appends \n, \r, \t, \x1b or \u202e for an unsafe character, and \xNN for a byte that is not a
// character.
inline void append_escape(std::string& out, const ShownCharacter& character, char byte) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  const auto append = [&out](char kind, char32_t value, unsigned digits) {
    out += {'\\', kind};
    while (digits-- > 0) out += kDigits[value >> (4 * digits) & 0x0FU];
  };
  if (byte == '\n' || byte == '\r' || byte == '\t') {
    out += {'\\', byte == '\n' ? 'n' : byte == '\r' ? 'r' : 't'};
  } else if (character.code >= 0x7F) {  // as in JSON; no unsafe character has five digits
    append('u', character.code, 4);
  } else {
    append('x', static_cast<std::uint8_t>(byte), 2);
  }
}

// Selects the unsafe characters that are not escaped.
enum class KeptBreaks : std::uint8_t {
  kNone,
  kIndented,  // a line break before two blanks: the continuation of our own sentence
  kAll,       // line breaks and tabs: our own multi-line text, such as a table or help
};

// Returns `text` as valid UTF-8 with unsafe characters escaped. A backslash is not escaped.
[[nodiscard]] inline std::string shown_text(std::string_view text,
                                            KeptBreaks kept = KeptBreaks::kNone) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const ShownCharacter character = first_character(text);
    const std::size_t bytes = character.bytes == 0 ? 1 : character.bytes;
    const char byte = text.front();
    const bool is_break = byte == '\n' || byte == '\t';
    if (character.is_safe || (is_break && kept == KeptBreaks::kAll) ||
        (kept == KeptBreaks::kIndented && text.starts_with("\n  "))) {
      out += text.substr(0, bytes);
    } else {
      append_escape(out, character, byte);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace disttf
