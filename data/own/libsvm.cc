#include "data/own/libsvm.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/own/class_name.h"
#include "data/own/csv_cells.h"
#include "data/own/in_order.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"
#include "data/own/text_pieces.h"

namespace disttf::data {
namespace {

constexpr std::string_view kBlanks = " \t\r";
// The numbers of a dense block: 16 MiB.
constexpr std::size_t kBlockNumbers = std::size_t{4} << 20U;

// The rows of one piece, only with nonzero numbers.
struct SparseRows {
  struct Entry {
    std::uint32_t index = 0;
    float number = 0;
  };
  std::vector<Entry> entries;     // of all rows, one after the other
  std::vector<std::size_t> ends;  // [rows], index in `entries`
  RowBlock labels;                // without numbers
  LibsvmIndices indices;
};

// Takes the next word off `text`, with the blanks after it.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return word;
}

// Parses one piece per object; several threads each use their own.
class SparseParser {
 public:
  SparseParser(const std::filesystem::path& path, bool label_is_number, std::uint64_t first_line)
      : path_(path), label_is_number_(label_is_number), line_(first_line) {}

  SparseRows parse(std::string_view text) {
    for (; !text.empty(); ++line_) {
      // The last line may have no newline.
      const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
      parse_line(text.substr(0, end));
      text.remove_prefix(end);
    }
    return std::move(rows_);
  }

 private:
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw UnusableData(path_.string() + ", line " + std::to_string(line_) + ": " + sentence);
  }
  static std::string shown_word(std::string_view word) { return "\"" + printable(word) + "\""; }

  void parse_line(std::string_view line) {
    // Everything after # is a comment.
    line = line.substr(0, line.find_first_of("#\n"));
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) {
      return;
    }
    take_label(take_word(line));
    // Wider than an index, so that -1 stands for "none" and an index of 0 is larger.
    std::int64_t before = -1;
    while (!line.empty()) {
      before = take_entry(take_word(line), before);
    }
    // A line with a label alone is a row of zeros.
    rows_.ends.push_back(rows_.entries.size());
    ++rows_.indices.rows;
  }
  void take_label(std::string_view word) {
    // Multi-label files have lists; using the first label would be wrong without notice.
    if (word.find(',') != std::string_view::npos) {
      refuse(shown_word(word) + " is a list of labels; one label a row is allowed");
    }
    if (word.find(':') != std::string_view::npos) {
      refuse("the label is missing: the line begins with " + shown_word(word));
    }
    float number = 0;
    if (!read_number(word, number)) {
      refuse("the label " + shown_word(word) + " is not a number of 32 bits");
    }
    if (label_is_number_) {
      rows_.labels.targets.push_back(number);
      return;
    }
    // By the class's name, so that 1, +1 and 1.0 are one word and do not count against the limit.
    rows_.labels.labels.push_back(words_.place_of(class_name_of(word)));
    if (rows_.labels.words.size() > kMostBlockWords) {
      throw UnusableData(
          path_.string() + ": it has more than " + std::to_string(kMostBlockWords) +
          " different labels, which is too many for classes; --label_type number predicts "
          "numbers");
    }
  }
  // Returns the entry's index; `before` is the previous entry's index, or -1.
  std::int64_t take_entry(std::string_view word, std::int64_t before) {
    const std::size_t colon = word.find(':');
    const std::string_view key = word.substr(0, colon);
    std::uint32_t index = 0;
    const auto [stopped, error] = std::from_chars(key.data(), key.data() + key.size(), index);
    const bool is_whole = stopped == key.data() + key.size() && !key.empty();
    // The ranking format has an identifier in the first entry.
    if (key == "qid") {
      refuse(shown_word(word) + " is a query identifier; ranking is not supported, remove it");
    }
    if (colon == std::string_view::npos || !is_whole ||
        (error != std::errc() && error != std::errc::result_out_of_range)) {
      refuse(shown_word(word) + " is not INDEX:NUMBER");
    }
    // An index that does not fit the type is reported like one above the limit.
    if (error != std::errc() || index > kMostLibsvmIndex) {
      refuse("index " + printable(key) + " is above " + std::to_string(kMostLibsvmIndex) +
             ", the largest allowed index: every row would have that many numbers");
    }
    // The order is required, because an index that occurs twice would be ambiguous.
    if (std::int64_t{index} <= before) {
      refuse("index " + std::to_string(index) + " follows " + std::to_string(before) +
             "; indices must ascend, each once");
    }
    rows_.entries.push_back({.index = index, .number = number_of(word.substr(colon + 1), index)});
    rows_.indices.has_zero = rows_.indices.has_zero || index == 0;
    rows_.indices.largest = std::max(rows_.indices.largest, index);
    return index;
  }
  [[nodiscard]] float number_of(std::string_view text, std::uint32_t index) const {
    float number = 0;
    // The fast path covers most numbers.
    if (short_number(text, number) == text.size() && !text.empty()) {
      return number;
    }
    if (!read_number(text, number)) {
      refuse("index " + std::to_string(index) + ": " + shown_word(text) +
             " is not a number of 32 bits");
    }
    return number;
  }

  const std::filesystem::path& path_;
  const bool label_is_number_;
  std::uint64_t line_;
  SparseRows rows_;
  BlockWords words_{rows_.labels.words};
};

// Reads the pieces of one file, which several threads parse ahead.
class SparseFile {
 public:
  SparseFile(const std::filesystem::path& path, const LibsvmOptions& options,
             std::size_t piece_bytes)
      : path_(path),
        label_is_number_(options.label_is_number),
        // Quotes have no meaning here, so every newline ends a row.
        pieces_(path, TextPieces::Quotes::kMeanNothing, options.skipped_lines, piece_bytes),
        parsing_(options.threads) {}

  [[nodiscard]] bool next(SparseRows& rows) {
    TextPiece piece;
    while (!parsing_.is_full() && pieces_.next(piece)) {
      parsing_.begin([this, piece = std::move(piece)] {
        return SparseParser(path_, label_is_number_, piece.first_line).parse(piece.text);
      });
    }
    if (parsing_.is_empty()) {
      return false;
    }
    rows = parsing_.next();
    return true;
  }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return pieces_.bytes_read(); }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  const std::filesystem::path path_;
  const bool label_is_number_;
  TextPieces pieces_;
  InOrder<SparseRows> parsing_;  // declared last: its threads use path_
};

class LibsvmSource final : public RowSource {
 public:
  LibsvmSource(const std::filesystem::path& path, const LibsvmOptions& options,
               const LibsvmIndices& indices, std::size_t piece_bytes, std::size_t block_numbers)
      : file_(path, options, piece_bytes),
        indices_(indices),
        block_rows_(
            std::max<std::size_t>(1, block_numbers / std::max<std::size_t>(1, indices.columns()))) {
    if (indices.largest == 0 && !indices.has_zero) {
      throw UnusableData(path.string() + ": there is no number in it beside the labels");
    }
    // largest is at most kMostLibsvmIndex, so the loop ends and the list has a bounded size.
    for (std::uint32_t index = indices.first(); index <= indices.largest; ++index) {
      columns_.push_back(std::to_string(index));
    }
  }

  [[nodiscard]] const std::vector<std::string>& columns() const noexcept override {
    return columns_;
  }
  [[nodiscard]] const std::string& label_column() const noexcept override { return label_; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept override { return file_.bytes_read(); }
  [[nodiscard]] std::uint64_t converted_bytes() const noexcept override {
    return indices_.rows * columns_.size() * sizeof(float);
  }

  [[nodiscard]] bool next(RowBlock& block) override {
    // A piece may contain only comments.
    while (row_ == sparse_.ends.size()) {
      if (!file_.next(sparse_)) {
        return false;
      }
      row_ = 0;
      check_indices();
    }
    // A sparse piece of a few MiB can become gigabytes of zeros, so it is expanded in several
    // blocks.
    const std::size_t rows = std::min(block_rows_, sparse_.ends.size() - row_);
    // Each block receives all label texts of the piece, because the labels of its rows are indices
    // into them.
    block = {};
    block.words = sparse_.labels.words;
    append_part(sparse_.labels.labels, rows, block.labels);
    append_part(sparse_.labels.targets, rows, block.targets);
    // The numbers are zero except for the entries.
    block.numbers.assign(rows * columns_.size(), 0.0F);
    for (std::size_t i = 0; i < rows; ++i, ++row_) {
      const std::size_t begin = row_ == 0 ? 0 : sparse_.ends[row_ - 1];
      // check_indices() guarantees that each index has a column.
      for (std::size_t each = begin; each < sparse_.ends[row_]; ++each) {
        const SparseRows::Entry& entry = sparse_.entries[each];
        block.numbers[i * columns_.size() + entry.index - indices_.first()] = entry.number;
      }
    }
    return true;
  }

 private:
  // If the file grew after its indices were found, an entry could be written past the end of a row.
  void check_indices() const {
    if (sparse_.indices.largest > indices_.largest ||
        (sparse_.indices.has_zero && !indices_.has_zero)) {
      throw UnusableData(file_.path().string() + ": it was changed while it was read");
    }
  }
  // Appends the labels or targets of the next `rows` rows, if there are any.
  template <typename Value>
  void append_part(const std::vector<Value>& from, std::size_t rows, std::vector<Value>& to) const {
    if (!from.empty()) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(row_);
      to.assign(begin, begin + static_cast<std::ptrdiff_t>(rows));
    }
  }

  SparseFile file_;
  const LibsvmIndices indices_;
  const std::size_t block_rows_;
  std::vector<std::string> columns_;
  const std::string label_ = "label";
  SparseRows sparse_;    // of the current piece
  std::size_t row_ = 0;  // next row of sparse_
};

}  // namespace

void LibsvmIndices::add(const LibsvmIndices& other) noexcept {
  has_zero = has_zero || other.has_zero;
  largest = std::max(largest, other.largest);
  rows += other.rows;
}

LibsvmIndices libsvm_indices(const std::filesystem::path& path, const LibsvmOptions& options,
                             const std::function<void(std::uint64_t bytes)>& on_progress) {
  // Parses the whole file already in the first pass, so that all errors appear before the
  // conversion starts.
  SparseFile file(path, options, TextPieces::kPieceBytes);
  LibsvmIndices all;
  SparseRows rows;
  while (file.next(rows)) {
    all.add(rows.indices);
    if (on_progress) {
      on_progress(file.bytes_read());
    }
  }
  if (all.rows == 0) {
    throw UnusableData(path.string() + ": there are no rows in it");
  }
  return all;
}

std::unique_ptr<RowSource> open_libsvm(const std::filesystem::path& path,
                                       const LibsvmOptions& options, const LibsvmIndices& indices) {
  return open_libsvm(path, options, indices, TextPieces::kPieceBytes, kBlockNumbers);
}

std::unique_ptr<RowSource> open_libsvm(const std::filesystem::path& path,
                                       const LibsvmOptions& options, const LibsvmIndices& indices,
                                       std::size_t piece_bytes, std::size_t block_numbers) {
  return std::make_unique<LibsvmSource>(path, options, indices, piece_bytes, block_numbers);
}

}  // namespace disttf::data
