// In which encoding a table of text is: one answer for training, predict and serve.
//
// A table is UTF-8, with or without a byte order mark, and its lines end in LF or CR LF. A name or
// a label that is not valid UTF-8 is read as Windows-1252, which most files of one byte a character
// are: this depends on the bytes of that cell alone, so all readers come to the same text.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttf::data {

// How much of the beginning of a file refused_encoding() should get.
inline constexpr std::size_t kEncodingHeadBytes = 4096;

inline constexpr std::size_t kByteOrderMarkBytes = 3;
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text) noexcept;

// Why a file that begins with `head` is not read as a table: it is UTF-16 or UTF-32, its lines end
// in CR alone, it is compressed, or no text. Empty: nothing is known against it.
[[nodiscard]] std::string refused_encoding(std::string_view head);
// How it begins where the file is no text in any encoding.
inline constexpr std::string_view kNoText = "it is no text";

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

// `text` itself where it is valid UTF-8, else what it is as Windows-1252 (the five bytes that are
// not defined there become U+0081 and so on). Different bytes that are not UTF-8 stay different.
[[nodiscard]] std::string utf8_of(std::string_view text);

}  // namespace disttf::data
