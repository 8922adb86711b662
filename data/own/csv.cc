#include "data/own/csv.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "data/own/class_name.h"
#include "data/own/csv_cells.h"
#include "data/own/in_order.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"
#include "data/own/table_head.h"
#include "data/own/text_pieces.h"

namespace disttf::data {
namespace {

// The use of a column.
enum class Use : std::uint8_t { kNumber, kTarget, kLabel, kIgnored };

// How the lines of a file are parsed. Immutable during parsing, because several threads read it.
struct CsvTable {
  std::string path;
  char delimiter = ',';
  std::vector<std::string> names;  // of all columns
  std::vector<Use> uses;
  std::vector<std::string> numbers;  // the names of the number columns
  std::string label;
  std::uint64_t names_line = 0;  // 0: no line of names
  std::vector<std::string> warnings{};

  // "iris.csv, line 7, column 3 (petal width)"
  [[nodiscard]] std::string place(std::uint64_t line, std::size_t column) const {
    std::string text =
        path + ", line " + std::to_string(line) + ", column " + std::to_string(column + 1);
    return names_line == 0 ? text : text + " (" + printable(names[column]) + ")";
  }
};

std::string shown(std::string_view cell) { return "\"" + printable(cell) + "\""; }

std::string why_no_number(std::string_view cell) {
  return cell.empty() ? "the cell is empty; a number is expected"
                      : shown(cell) + " is not a number of 32 bits";
}

// Returns the column that `text` names or counts from 1.
std::size_t column_of(const CsvTable& table, const std::string& flag, const std::string& text) {
  // A name takes precedence over a number, because a column may be named "3".
  const auto named = std::ranges::find(table.names, text);
  if (named != table.names.end()) {
    return static_cast<std::size_t>(named - table.names.begin());
  }
  std::size_t column = 0;
  if (counts_a_column(text, table.names.size(), column)) {
    return column;
  }
  throw UnusableData("--" + flag + ": " + table.path + " has no column " + shown(text) +
                     "; a name of its first line or a number from 1 to " +
                     std::to_string(table.names.size()) + " is allowed");
}

std::size_t usual_label(const CsvTable& table) {
  // The order of the list decides if several of the usual names occur.
  for (const std::string_view wanted : kLabelNames) {
    for (std::size_t i = 0; table.names_line != 0 && i < table.names.size(); ++i) {
      const auto same = [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == b;
      };
      if (table.uses[i] != Use::kIgnored && std::ranges::equal(table.names[i], wanted, same)) {
        return i;
      }
    }
  }
  // Most tables have their label in the last column.
  for (std::size_t i = table.names.size(); i-- > 0;) {
    if (table.uses[i] != Use::kIgnored) {
      return i;
    }
  }
  throw UnusableData("--ignore_columns: all columns of " + table.path +
                     " are named; a label and a column of numbers are needed");
}

void choose_columns(CsvTable& table, const CsvOptions& options) {
  table.uses.assign(table.names.size(), Use::kNumber);
  for (const std::string& ignored : options.ignored_columns) {
    table.uses[column_of(table, "ignore_columns", ignored)] = Use::kIgnored;
  }
  const std::size_t label = options.label_column.empty()
                                ? usual_label(table)
                                : column_of(table, "label_column", options.label_column);
  if (table.uses[label] == Use::kIgnored) {
    throw UnusableData("--label_column: " + shown(options.label_column) +
                       " is one of --ignore_columns as well");
  }
  table.uses[label] = options.label_is_number ? Use::kTarget : Use::kLabel;
  table.label = table.names[label];
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    if (table.uses[i] == Use::kNumber) {
      table.numbers.push_back(table.names[i]);
    }
  }
  if (table.numbers.empty()) {
    throw UnusableData(table.path + ": it has no column of numbers beside the label " +
                       shown(table.label));
  }
}

// Analyses the beginning of a table, which is line `line` of the file; `rows` receives the text
// after the line of names.
CsvTable table_of(const std::string& path, std::string_view text, std::uint64_t line,
                  const CsvOptions& options, std::string_view& rows) {
  TableHeadOptions head_options{.named_columns = options.ignored_columns,
                                .known_names = options.known_names};
  // A column that a flag names by a word is evidence that the first line holds names.
  if (!options.label_column.empty()) {
    head_options.named_columns.push_back(options.label_column);
  }
  TableHead head = read_table_head(text, line, head_options, path);
  CsvTable table;
  table.path = path;
  table.delimiter = head.delimiter;
  table.names = std::move(head.names);
  table.names_line = head.has_names ? head.line : 0;
  table.warnings = std::move(head.warnings);
  rows = head.rows;
  choose_columns(table, options);
  return table;
}

// Parses the rows of one piece. Several threads each use their own parser.
class PieceParser {
 public:
  PieceParser(const CsvTable& table, const TextPiece& piece, std::size_t skipped_bytes,
              std::uint64_t first_line)
      : table_(table),
        cells_(std::string_view(piece.text).substr(skipped_bytes), table.delimiter),
        counted_(cells_.rest().data()),
        line_(first_line),
        words_(block_.words) {}

  RowBlock parse() {
    // A number has about six characters with its separator, so the vector rarely grows.
    block_.numbers.reserve(cells_.rest().size() / 6);
    while (!cells_.at_end()) {
      // Positions are kept as pointers: line numbers are counted only when an error needs one.
      const char* const begin = cells_.rest().data();
      if (cells_.skip_empty_line()) continue;
      if (cells_.at_end()) break;
      row(begin);
    }
    return std::move(block_);
  }

 private:
  // Returns the line of the position `at` in the piece. Positions must ascend, so that each newline
  // is counted once.
  std::uint64_t line_of(const char* at) {
    line_ += static_cast<std::uint64_t>(std::count(counted_, at, '\n'));
    counted_ = at;
    return line_;
  }
  void row(const char* begin) {
    const std::size_t columns = table_.uses.size();
    for (std::size_t column = 0; column < columns; ++column) {
      float number = 0;
      // The fast path takes plain numbers; everything else, including errors, goes through use().
      if (table_.uses[column] == Use::kNumber && cells_.next_number(number)) {
        block_.numbers.push_back(number);
      } else {
        use(cells_.next(), column, begin);
      }
      // A wrong number of cells is reported instead of the confusing errors that it would cause
      // later.
      if (cells_.line_ended() != (column + 1 == columns)) {
        check_length(begin);
      }
    }
  }
  void use(std::string_view cell, std::size_t column, const char* begin) {
    // Before the test for ignored columns: an open quote swallows the cells after it.
    if (cells_.is_malformed()) {
      throw UnusableData(table_.place(line_of(begin), column) +
                         ": a quote is not closed at the cell's end");
    }
    if (table_.uses[column] == Use::kIgnored) {
      return;
    }
    if (table_.uses[column] != Use::kLabel) {
      float number = 0;
      if (!read_number(cell, number)) {
        check_length(begin);
        throw UnusableData(table_.place(line_of(begin), column) + ": " + why_no_number(cell));
      }
      (table_.uses[column] == Use::kTarget ? block_.targets : block_.numbers).push_back(number);
      return;
    }
    if (cell.empty()) {
      throw UnusableData(table_.place(line_of(begin), column) + ": the label is missing");
    }
    // Only a new word needs the check; repeated labels are the common case.
    const std::size_t words = block_.words.size();
    block_.labels.push_back(words_.place_of(cell));
    if (block_.words.size() > words) {
      check_label(cell, column, begin);
    }
    // Refused early: a column of measurements would otherwise collect millions of words.
    if (block_.words.size() > kMostBlockWords) {
      throw UnusableData(
          table_.path + ": column " + shown(table_.label) + " has more than " +
          std::to_string(kMostBlockWords) +
          " values, which is too many for classes; --label_column selects another column, and "
          "--label_type number predicts numbers");
    }
  }
  // Throws if a label is not a valid class name.
  void check_label(std::string_view cell, std::size_t column, const char* begin) {
    if (cell.find('\0') != std::string_view::npos) {
      throw UnusableData(table_.place(line_of(begin), column) + ": the label " + shown(cell) +
                         " has a byte that is zero");
    }
    // A missing delimiter or an open quote makes long cells, so the length of the line is checked
    // first.
    if (cell.size() > kMostNameBytes) {
      check_length(begin);
      throw UnusableData(table_.place(line_of(begin), column) + ": the label has " +
                         std::to_string(cell.size()) + " bytes; at most " +
                         std::to_string(kMostNameBytes) + " are allowed");
    }
  }
  // Throws if the line that begins at `begin` has a wrong number of cells: that is the more useful
  // error, because it explains the others.
  void check_length(const char* begin) {
    const char* const end = cells_.rest().data() + cells_.rest().size();
    // The line is parsed once more, because row() stopped in its middle.
    CsvCells line({begin, static_cast<std::size_t>(end - begin)}, table_.delimiter);
    std::size_t cells = 0;
    do {
      static_cast<void>(line.next());
      ++cells;
    } while (!line.line_ended());
    if (cells != table_.uses.size()) {
      const char* const stop = line.rest().empty() ? end : line.rest().data();
      const std::string_view text(begin, static_cast<std::size_t>(stop - begin));
      const std::size_t last = text.find_last_not_of("\r\n");
      // A CR in the middle of a line suggests that two lines were joined.
      const bool has_cr = last != std::string_view::npos &&
                          text.substr(0, last).find('\r') != std::string_view::npos;
      throw UnusableData(table_.path + ", line " + std::to_string(line_of(begin)) + ": " +
                         std::to_string(cells) + (cells == 1 ? " cell" : " cells") +
                         " where the first line has " + std::to_string(table_.uses.size()) +
                         (has_cr ? "; it contains a CR alone, which does not end a line" : ""));
    }
  }

  const CsvTable& table_;
  CsvCells cells_;
  const char* counted_;  // newlines before it have been counted
  std::uint64_t line_;   // line number of `counted_`
  RowBlock block_;
  BlockWords words_;
};

class CsvSource final : public RowSource {
 public:
  CsvSource(const std::filesystem::path& path, const CsvOptions& options, std::size_t piece_bytes)
      : pieces_(path, TextPieces::Quotes::kHoldNewlines, options.skipped_lines, piece_bytes),
        parsing_(options.threads) {
    // The head of a table must lie in the first piece, which holds at least one whole line.
    TextPiece first;
    if (!pieces_.next(first)) {
      throw UnusableData(path.string() + (options.skipped_lines == 0
                                              ? ": the file is empty"
                                              : ": there are no lines after the skipped ones"));
    }
    std::string_view rows;
    table_ = table_of(path.string(), first.text, first.first_line, options, rows);
    const std::size_t skipped = first.text.size() - rows.size();
    const std::uint64_t line = first.first_line + static_cast<std::uint64_t>(std::ranges::count(
                                                      first.text.substr(0, skipped), '\n'));
    // After table_ is complete, because from here on other threads read it.
    begin_parsing(std::move(first), skipped, line);
  }

  [[nodiscard]] const std::vector<std::string>& columns() const noexcept override {
    return table_.numbers;
  }
  [[nodiscard]] const std::string& label_column() const noexcept override { return table_.label; }
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept override {
    return table_.warnings;
  }
  [[nodiscard]] const std::vector<std::string>& all_names() const noexcept override {
    return table_.names;
  }
  [[nodiscard]] bool has_names() const noexcept override { return table_.names_line != 0; }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept override { return pieces_.bytes_read(); }

  [[nodiscard]] bool next(RowBlock& block) override {
    for (;;) {
      TextPiece piece;
      while (!parsing_.is_full() && pieces_.next(piece)) {
        const std::uint64_t line = piece.first_line;
        begin_parsing(std::move(piece), 0, line);
      }
      if (parsing_.is_empty()) {
        return false;
      }
      block = parsing_.next();
      // A piece can consist of empty lines, and next() must return at least one row.
      if (block.rows() > 0) {
        return true;
      }
    }
  }

 private:
  void begin_parsing(TextPiece piece, std::size_t skipped, std::uint64_t line) {
    // The work owns its piece, so the text lives exactly as long as its parser.
    parsing_.begin([this, skipped, line, piece = std::move(piece)] {
      return PieceParser(table_, piece, skipped, line).parse();
    });
  }

  TextPieces pieces_;
  CsvTable table_;
  InOrder<RowBlock> parsing_;  // declared last: its threads use table_
};

}  // namespace

std::unique_ptr<RowSource> open_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return open_csv(path, options, TextPieces::kPieceBytes);
}

std::unique_ptr<RowSource> open_csv(const std::filesystem::path& path, const CsvOptions& options,
                                    std::size_t piece_bytes) {
  return std::make_unique<CsvSource>(path, options, piece_bytes);
}

}  // namespace disttf::data
