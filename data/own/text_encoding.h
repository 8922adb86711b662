// Determines the encoding of a text table, with the same rules for training, predict and serve.
//
// A table is UTF-8, with or without a byte order mark, and its lines end in LF or CR LF. A name or
// label that is not valid UTF-8 is read as Windows-1252, the most common single-byte encoding. The
// decision depends only on the bytes of that cell, so all readers get the same text.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace disttf::data {

// The number of bytes from the beginning of a file that refused_encoding() needs.
inline constexpr std::size_t kEncodingHeadBytes = 4096;

inline constexpr std::size_t kByteOrderMarkBytes = 3;
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text) noexcept;

// Returns why a file that begins with `head` cannot be read as a table: it is UTF-16 or UTF-32, its
// lines end in CR alone, it is compressed, or it is not text. Empty: no problem found.
[[nodiscard]] std::string refused_encoding(std::string_view head);
// The start of the sentence for a file that is not text in any encoding.
inline constexpr std::string_view kNoText = "it is no text";

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

// Returns `text` if it is valid UTF-8, otherwise its Windows-1252 decoding (the five undefined
// bytes become U+0081 and so on). Different invalid texts stay different.
[[nodiscard]] std::string utf8_of(std::string_view text);

}  // namespace disttf::data
