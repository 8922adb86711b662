// Parses a TOML file into keys and values, or throws a sentence with the number of the wrong line.
//
// Files come from editors on every system: a byte order mark and CRLF line ends are accepted, and a
// UTF-16 file is rejected by name.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "main/toml.h"

namespace disttf {

// what() is one sentence without the line.
class TomlError : public std::invalid_argument {
 public:
  TomlError(std::size_t line, const std::string& sentence)
      : std::invalid_argument(sentence), line_(line) {}

  [[nodiscard]] std::size_t line() const noexcept { return line_; }  // from 1

 private:
  std::size_t line_;
};

// `text` without its UTF-8 byte order mark. Throws TomlError if it is UTF-16, has a zero byte or
// ends lines with CR alone.
[[nodiscard]] std::string_view checked_utf8(std::string_view text);

// toml++ 3.3 has undefined behaviour for some characters beyond ASCII: escape_non_ascii() turns
// each such byte into ~XX, and unescape_non_ascii() turns keys, texts and messages back. ~ itself
// becomes ~7E, also where a file spells it \u007E: toml++ would make that a ~ of an escape. (In a
// text in single quotes \u007E should stay as it is, and becomes ~, too.)
[[nodiscard]] std::string escape_non_ascii(std::string_view text);
[[nodiscard]] std::string unescape_non_ascii(std::string_view text);

// Parses `text`, which is ASCII and has no byte order mark. Throws TomlError.
[[nodiscard]] toml::table parse_toml(std::string_view text);

// Line `number` (from 1) of `text`, without its end. Empty beyond the last line.
[[nodiscard]] std::string_view line_of(std::string_view text, std::size_t number) noexcept;

}  // namespace disttf
