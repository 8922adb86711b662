// Makes text from outside safe for one line of a log or an error message.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace disttf::net {

// The most that a message shows of a value: enough to recognise it, too little to flood a log.
inline constexpr std::size_t kMaxShownBytes = 80;

// `text` in double quotes, truncated to kMaxShownBytes with "..." after the quote. Everything but
// printable ASCII is written as \xNN (and
// \n, \t, \", \\ by their short names).
[[nodiscard]] std::string quoted(std::string_view text);

// ASCII only, whatever the locale.
[[nodiscard]] constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_letter(char c) noexcept {
  return lower(c) >= 'a' && lower(c) <= 'z';
}

// The value of a hexadecimal digit; -1 for other characters.
[[nodiscard]] constexpr int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  return lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1;
}

// Parses decimal digits alone; nullopt if `text` has anything else, or a number that does not fit.
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text) noexcept;

// `text` without surrounding blanks, tabs and line breaks.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

// The texts of `items`, which `text_of` makes, with `separator` between them.
template <typename Items, typename TextOf = std::identity>
[[nodiscard]] std::string joined(const Items& items, std::string_view separator,
                                 TextOf text_of = {}) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += std::invoke(text_of, item);
  }
  return text;
}

// Reports a mistake of the user: throws std::invalid_argument with the sentence.
[[noreturn]] inline void fail(const std::string& sentence) {
  throw std::invalid_argument(sentence);
}

// `text` as valid UTF-8 on one line: control characters become spaces, bytes that are not UTF-8
// become '?'. For sentences that a peer has sent.
[[nodiscard]] std::string one_line(std::string_view text);

// The longest prefix of at most `max_bytes` that does not end inside a UTF-8 character.
[[nodiscard]] std::string_view cut_utf8(std::string_view text, std::size_t max_bytes) noexcept;

}  // namespace disttf::net
