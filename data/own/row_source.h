// What a user's file says, in the one form that all formats are read into: rows of numbers, or
// images, each with a label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/own/shown_text.h"

namespace disttf::data {

// A sentence for the user: which file, line and column, what is there, what is allowed. It is
// escaped() here, so that no name of a file and no cell in it can forge a line of the log.
class UnusableData : public std::runtime_error {
 public:
  explicit UnusableData(const std::string& sentence) : std::runtime_error(escaped(sentence)) {}
};

// Rows that follow each other in a file.
struct RowBlock {
  std::vector<float> numbers;         // [rows, columns], each finite
  std::vector<std::uint8_t> pixels;   // [rows, ImageShape::size()]: of images, and no numbers then
  std::vector<std::uint32_t> labels;  // [rows]: places in `words`
  std::vector<std::string> words;     // the labels of these rows as they are written, each once
  std::vector<float> targets;         // [rows]: labels that are numbers, and then no others
  [[nodiscard]] std::size_t rows() const noexcept { return labels.size() + targets.size(); }
};

// A block has no more labels: whoever has more has no classes.
inline constexpr std::size_t kMostBlockWords = 4096;

// Of one image, whatever its file says.
inline constexpr std::uint64_t kMostImageBytes = std::uint64_t{64} << 20U;

// One file that is read from its beginning to its end. Used by one thread.
class RowSource {
 public:
  RowSource() = default;
  virtual ~RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;

  // The names of a row's numbers, none of images, and of its label.
  [[nodiscard]] virtual const std::vector<std::string>& columns() const noexcept = 0;
  [[nodiscard]] virtual const std::string& label_column() const noexcept = 0;

  // Of a table with a line of names: all of them, also of columns that are left out.
  [[nodiscard]] virtual const std::vector<std::string>& all_names() const noexcept {
    return columns();
  }
  // Whether the file has a line of names; else columns are called by numbers.
  [[nodiscard]] virtual bool has_names() const noexcept { return false; }
  // Sentences that the owner of the file should know, about other things than single rows.
  [[nodiscard]] virtual const std::vector<std::string>& warnings() const noexcept {
    static const std::vector<std::string> kNone;
    return kNone;
  }

  // Of every row, where they are images.
  [[nodiscard]] virtual std::optional<ImageShape> images() const noexcept { return std::nullopt; }

  // The next rows, one at least; false: there are none any more. Which rows make a block is a
  // matter of the file's bytes alone, not of threads or time. Throws UnusableData, and
  // std::system_error where the file cannot be read.
  [[nodiscard]] virtual bool next(RowBlock& block) = 0;
  // Of the file, so far: at most those of the rows that next() has given, and a few blocks more.
  [[nodiscard]] virtual std::uint64_t bytes_read() const noexcept = 0;
  // Of all rows as arrays; 0: not known before they are read.
  [[nodiscard]] virtual std::uint64_t converted_bytes() const noexcept { return 0; }
};

}  // namespace disttf::data
