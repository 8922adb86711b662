// What a user's file says, in the one form that all formats are read into: rows of numbers, each
// with a label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace disttf::data {

// A sentence for the user: which file, line and column, what is there, what is allowed.
class UnusableData : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Rows that follow each other in a file.
struct RowBlock {
  std::vector<float> numbers;         // [rows, columns], each finite
  std::vector<std::uint32_t> labels;  // [rows]: places in `words`
  std::vector<std::string> words;     // the labels of these rows as they are written, each once
  std::vector<float> targets;         // [rows]: labels that are numbers, and then no others
  [[nodiscard]] std::size_t rows() const noexcept { return labels.size() + targets.size(); }
};

// A block has no more labels: whoever has more has no classes.
inline constexpr std::size_t kMostBlockWords = 4096;

// One file that is read from its beginning to its end. Used by one thread.
class RowSource {
 public:
  RowSource() = default;
  virtual ~RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;

  // The names of a row's numbers, and of its label.
  [[nodiscard]] virtual const std::vector<std::string>& columns() const noexcept = 0;
  [[nodiscard]] virtual const std::string& label_column() const noexcept = 0;

  // The next rows, one at least; false: there are none any more. Which rows make a block is a
  // matter of the file's bytes alone, not of threads or time. Throws UnusableData, and
  // std::system_error where the file cannot be read.
  [[nodiscard]] virtual bool next(RowBlock& block) = 0;
  // Of the file, so far: at most those of the rows that next() has given, and a few blocks more.
  [[nodiscard]] virtual std::uint64_t bytes_read() const noexcept = 0;
};

}  // namespace disttf::data
