// External text (cells, file names, sentences that contain them) in a form that a log, a terminal
// or an error message can show safely.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttf::data {

// Returns the length of the UTF-8 character (RFC 3629) that `text` begins with, and 0 if it begins
// with none.
// REQUIRES: !text.empty().
[[nodiscard]] std::size_t utf8_character(std::string_view text) noexcept;

// Applies shown_text() of text/shown_text.h: returns `text` on one line, as valid UTF-8 without
// terminal control sequences.
[[nodiscard]] std::string escaped(std::string_view text);

// Returns escaped() of the first 60 bytes; a longer text ends in "...".
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace disttf::data
