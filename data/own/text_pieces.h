// Reads a text file in pieces of whole lines for parsing by several threads; the file may be larger
// than memory.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "data/file.h"

namespace disttf::data {

struct TextPiece {
  std::string text;              // ends with a newline, except at the file's end
  std::uint64_t first_line = 1;  // line number in the file, from 1
};

class TextPieces {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20U;
  static constexpr std::size_t kMostLineBytes = std::size_t{64} << 20U;

  // kHoldNewlines: a newline in double quotes does not end a line, except in the `skipped_lines` at
  // the beginning, which need not be part of the table.
  enum class Quotes : std::uint8_t { kHoldNewlines, kMeanNothing };

  // Skips a byte order mark. Throws UnusableData for a file in another encoding (text_encoding.h),
  // and std::system_error if it cannot be read; `piece_bytes` is for tests.
  TextPieces(const std::filesystem::path& path, Quotes quotes, std::size_t skipped_lines = 0,
             std::size_t piece_bytes = kPieceBytes);

  // Reads the next piece, which is not empty; returns false at the end of the file. The pieces
  // depend only on the bytes. Throws UnusableData for a line of more than kMostLineBytes.
  [[nodiscard]] bool next(TextPiece& piece);
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  // Skips `lines` lines at the beginning of the file.
  void skip(std::size_t lines);
  // Appends up to piece_bytes_ of the file to `text`; returns false at the end.
  bool read_more(std::string& text);

  const std::filesystem::path path_;
  const Quotes quotes_;
  const std::size_t piece_bytes_;
  FileDescriptor file_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t offset_ = 0;
  std::string rest_;  // text after the last whole line
  std::uint64_t line_ = 1;
};

}  // namespace disttf::data
