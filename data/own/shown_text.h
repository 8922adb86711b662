// Text from outside (cells, names of files, sentences with either) as a log, a terminal or an error
// message may show it.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttf::data {

// The length of the UTF-8 character (RFC 3629) that `text` begins with; 0: it begins with none.
// REQUIRES: !text.empty().
[[nodiscard]] std::size_t utf8_character(std::string_view text) noexcept;

// shown_text() of text/shown_text.h: `text` on one line, as valid UTF-8 that no terminal takes for
// a command.
[[nodiscard]] std::string escaped(std::string_view text);

// escaped(), of the first 60 bytes: what is longer ends in "...".
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace disttf::data
