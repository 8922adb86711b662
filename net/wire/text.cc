#include "net/wire/text.h"

#include <algorithm>
#include <charconv>

#include "text/shown_text.h"

namespace disttf::net {
namespace {

[[nodiscard]] std::uint8_t byte_at(std::string_view text, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(text[at]);
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
  // Everything else is escaped, because the text may come from a peer and is shown on terminals.
  if (byte >= 0x20 && byte < 0x7F) {
    out += character;
  } else {
    out += "\\x";
    out += kHex[byte >> 4U];
    out += kHex[byte & 0x0FU];
  }
}

}  // namespace

std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

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
    const ShownCharacter character = first_character(text);
    // An invalid byte counts as one character, so that the loop always advances.
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (character.is_safe) {
      out += text.substr(0, bytes);
    } else {
      out += character.bytes == 0 ? '?' : ' ';
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string_view cut_utf8(std::string_view text, std::size_t max_bytes) noexcept {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  // Continuation bytes are 10xxxxxx: go back to the character's first byte.
  while (end > 0 && (byte_at(text, end) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

}  // namespace disttf::net
