// The common form of all formats of a user's file: rows of numbers, or images, each with a label.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "text/shown_text.h"

namespace disttf::data {

// A sentence for the user: which file, line and column, what was found and what is allowed. The
// constructor applies shown_text(), so no file name and no cell can forge a line of the log.
class UnusableData : public std::runtime_error {
 public:
  explicit UnusableData(const std::string& sentence) : std::runtime_error(shown_text(sentence)) {}
};

// Consecutive rows of a file.
struct RowBlock {
  std::vector<float> numbers;         // [rows, columns], each finite
  std::vector<std::uint8_t> pixels;   // [rows, ImageShape::size()]: for images, instead of numbers
  std::vector<std::uint32_t> labels;  // [rows]: indices in `words`
  std::vector<std::string> words;     // the distinct labels of these rows, as written
  std::vector<float> targets;         // [rows]: numeric labels, instead of `labels`
  [[nodiscard]] std::size_t rows() const noexcept { return labels.size() + targets.size(); }
};

// The most distinct labels of a block; data with more of them does not have classes.
inline constexpr std::size_t kMostBlockWords = 4096;

// The limit of one image, whatever its file declares.
inline constexpr std::uint64_t kMostImageBytes = std::uint64_t{64} << 20U;

// A file that is read from beginning to end. Used by one thread.
class RowSource {
 public:
  RowSource() = default;
  virtual ~RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;

  // The names of a row's numbers (none for images), and of its label.
  [[nodiscard]] virtual const std::vector<std::string>& columns() const noexcept = 0;
  [[nodiscard]] virtual const std::string& label_column() const noexcept = 0;

  // All names of a table with a line of names, including ignored columns.
  [[nodiscard]] virtual const std::vector<std::string>& all_names() const noexcept {
    return columns();
  }
  // Returns whether the file has a line of names; otherwise columns are named by numbers.
  [[nodiscard]] virtual bool has_names() const noexcept { return false; }
  // Sentences for the owner of the file, about problems other than single rows.
  [[nodiscard]] virtual const std::vector<std::string>& warnings() const noexcept {
    static const std::vector<std::string> kNone;
    return kNone;
  }

  // The shape of every row, if the rows are images.
  [[nodiscard]] virtual std::optional<ImageShape> images() const noexcept { return std::nullopt; }

  // Reads the next rows, at least one; returns false at the end. The division into blocks depends
  // only on the file's bytes, not on threads or time. Throws UnusableData, and std::system_error if
  // the file cannot be read.
  [[nodiscard]] virtual bool next(RowBlock& block) = 0;
  // Bytes of the file read so far: those of the rows that next() has returned, and at most a few
  // blocks more.
  [[nodiscard]] virtual std::uint64_t bytes_read() const noexcept = 0;
  // The size of all rows as arrays; 0 if it is not known before they are read.
  [[nodiscard]] virtual std::uint64_t converted_bytes() const noexcept { return 0; }
};

// Gives each label its index among the words of a block (RowBlock::words).
//
// Not thread-safe.
class BlockWords {
 public:
  // `words` must outlive this.
  explicit BlockWords(std::vector<std::string>& words) : words_(words) {}
  std::uint32_t place_of(std::string_view word) {
    if (last_ < words_.size() && words_[last_] == word) {
      return last_;
    }
    const auto found = std::ranges::find(words_, word);
    last_ = static_cast<std::uint32_t>(found - words_.begin());
    if (found == words_.end()) {
      words_.emplace_back(word);
    }
    return last_;
  }

 private:
  std::vector<std::string>& words_;
  std::uint32_t last_ = 0;
};

}  // namespace disttf::data
