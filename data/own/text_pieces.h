// A text file in pieces of whole lines, as they are parsed by several threads at once: a file
// larger than memory is read so.
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
  std::string text;              // ends with a newline, but for the file's last one
  std::uint64_t first_line = 1;  // of the file, from 1
};

class TextPieces {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20U;
  static constexpr std::size_t kMostLineBytes = std::size_t{64} << 20U;

  // kHoldNewlines: one inside of double quotes ends no line, but of `skipped_lines` at the
  // beginning, which need be no table.
  enum class Quotes : std::uint8_t { kHoldNewlines, kMeanNothing };

  // A byte order mark is left out. Throws UnusableData for a file in another encoding
  // (text_encoding.h), and std::system_error where it cannot be read; `piece_bytes` is for tests.
  TextPieces(const std::filesystem::path& path, Quotes quotes, std::size_t skipped_lines = 0,
             std::size_t piece_bytes = kPieceBytes);

  // The next piece, not empty; false: the file is at its end. The pieces are the same whenever the
  // bytes are. Throws UnusableData for a line of more than kMostLineBytes.
  [[nodiscard]] bool next(TextPiece& piece);
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  // Takes so many lines off the beginning of the file.
  void skip(std::size_t lines);
  // Appends up to piece_bytes_ of the file to `text`; false: there are none.
  bool read_more(std::string& text);

  const std::filesystem::path path_;
  const Quotes quotes_;
  const std::size_t piece_bytes_;
  FileDescriptor file_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t offset_ = 0;
  std::string rest_;  // behind the last whole line
  std::uint64_t line_ = 1;
};

}  // namespace disttf::data
