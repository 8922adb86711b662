#include "data/own/csv.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "data/own/block_words.h"
#include "data/own/csv_cells.h"
#include "data/own/in_order.h"
#include "data/own/text_pieces.h"

namespace disttf::data {
namespace {

constexpr std::array<char, 4> kDelimiters = {',', ';', '\t', '|'};
constexpr std::array<std::string_view, 4> kLabelNames = {"label", "class", "target", "species"};

// What one column is.
enum class Use : std::uint8_t { kNumber, kTarget, kLabel, kIgnored };

// How the lines of one file are read. Immutable while they are.
struct CsvTable {
  std::string path;
  char delimiter = ',';
  std::vector<std::string> names;  // of all columns
  std::vector<Use> uses;
  std::vector<std::string> numbers;  // names of those
  std::string label;
  std::uint64_t names_line = 0;  // 0: no line of names

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

bool is_number(const std::string& cell) {
  float ignored = 0;
  return read_number(cell, ignored);
}

// Up to the newline that is in no quotes.
std::string_view first_line_of(std::string_view text) {
  bool is_quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    is_quoted = text[at] == '"' ? !is_quoted : is_quoted;
    if (text[at] == '\n' && !is_quoted) {
      return text.substr(0, at + 1);
    }
  }
  return text;
}

char most_frequent_delimiter(std::string_view line) {
  std::array<std::size_t, kDelimiters.size()> counts{};
  bool is_quoted = false;
  for (const char c : line) {
    is_quoted = c == '"' ? !is_quoted : is_quoted;
    const auto* const found = std::ranges::find(kDelimiters, c);
    if (!is_quoted && found != kDelimiters.end()) {
      ++counts.at(static_cast<std::size_t>(found - kDelimiters.begin()));
    }
  }
  return kDelimiters.at(
      static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin()));
}

// Whether `first` has the names of the columns, whose first row is `second`, if there is one.
bool is_line_of_names(const std::vector<std::string>& first,
                      const std::vector<std::string>& second) {
  if (std::ranges::none_of(first, is_number)) {
    return true;
  }
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (!is_number(first[i]) && is_number(second[i])) {
      return true;
    }
  }
  return false;
}

// The column that `text` names, or numbers from 1.
std::size_t column_of(const CsvTable& table, const std::string& flag, const std::string& text) {
  const auto named = std::ranges::find(table.names, text);
  if (named != table.names.end()) {
    return static_cast<std::size_t>(named - table.names.begin());
  }
  std::size_t number = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && stopped == text.data() + text.size() && number >= 1 &&
      number <= table.names.size()) {
    return number - 1;
  }
  throw UnusableData("--" + flag + ": " + table.path + " has no column " + shown(text) +
                     "; a name of its first line or a number from 1 to " +
                     std::to_string(table.names.size()) + " is allowed");
}

std::size_t usual_label(const CsvTable& table) {
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
  table.label = printable(table.names[label]);
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    if (table.uses[i] == Use::kNumber) {
      table.numbers.push_back(printable(table.names[i]));
    }
  }
  if (table.numbers.empty()) {
    throw UnusableData(table.path + ": it has no column of numbers beside the label " +
                       shown(table.label));
  }
}

// From the beginning of the table, line `line` of the file; `rows` becomes what follows the line of
// names.
CsvTable table_of(const std::string& path, std::string_view text, std::uint64_t line,
                  const CsvOptions& options, std::string_view& rows) {
  CsvTable table;
  table.path = path;
  CsvCells empty_lines(text, '\n');
  while (empty_lines.skip_empty_line()) ++line;
  rows = empty_lines.rest();
  if (rows.empty()) {
    throw UnusableData(path + ": there are no lines in it" +
                       (options.skipped_lines == 0 ? "" : " behind those that are skipped"));
  }
  const std::string_view first = first_line_of(rows);
  const std::string_view below = rows.substr(first.size());
  table.delimiter = most_frequent_delimiter(first);
  // They were skipped before it was known that tabs mean something.
  const std::string_view skipped = text.substr(0, text.size() - rows.size());
  if (const std::size_t tab = skipped.find('\t');
      table.delimiter == '\t' && tab != std::string_view::npos) {
    const auto lines = std::ranges::count(skipped.substr(tab), '\n');
    throw UnusableData(path + ", line " + std::to_string(line - static_cast<std::uint64_t>(lines)) +
                       ": all its cells are empty");
  }
  table.names = cells_of_line(first, table.delimiter);
  if (is_line_of_names(table.names, below.empty() ? std::vector<std::string>()
                                                  : cells_of_line(below, table.delimiter))) {
    table.names_line = line;
    rows = below;
  } else {
    for (std::size_t i = 0; i < table.names.size(); ++i) {
      table.names[i] = std::to_string(i + 1);
    }
  }
  choose_columns(table, options);
  return table;
}

// The rows of one piece. Called from several threads.
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
    block_.numbers.reserve(cells_.rest().size() / 6);
    while (!cells_.at_end()) {
      const char* const begin = cells_.rest().data();
      if (cells_.skip_empty_line()) continue;
      if (cells_.at_end()) break;
      row(begin);
    }
    return std::move(block_);
  }

 private:
  // `at`, a place in the piece, is in this line. Of increasing places.
  std::uint64_t line_of(const char* at) {
    line_ += static_cast<std::uint64_t>(std::count(counted_, at, '\n'));
    counted_ = at;
    return line_;
  }
  void row(const char* begin) {
    const std::size_t columns = table_.uses.size();
    for (std::size_t column = 0; column < columns; ++column) {
      float number = 0;
      if (table_.uses[column] == Use::kNumber && cells_.next_number(number)) {
        block_.numbers.push_back(number);
      } else {
        use(cells_.next(), column, begin);
      }
      if (cells_.line_ended() != (column + 1 == columns)) {
        check_length(begin);
      }
    }
  }
  void use(std::string_view cell, std::size_t column, const char* begin) {
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
    block_.labels.push_back(words_.place_of(cell));
    if (block_.words.size() > kMostBlockWords) {
      throw UnusableData(table_.path + ": column " + shown(table_.label) + " has more than " +
                         std::to_string(kMostBlockWords) +
                         " values, which are not classes; --label_column says which one is, and "
                         "--label_type number takes numbers");
    }
  }
  // Throws where the line that begins there has another number of cells: then that is what is wrong
  // with it, whatever else is.
  void check_length(const char* begin) {
    const char* const end = cells_.rest().data() + cells_.rest().size();
    CsvCells line({begin, static_cast<std::size_t>(end - begin)}, table_.delimiter);
    std::size_t cells = 0;
    do {
      static_cast<void>(line.next());
      ++cells;
    } while (!line.line_ended());
    if (cells != table_.uses.size()) {
      throw UnusableData(table_.path + ", line " + std::to_string(line_of(begin)) + ": " +
                         std::to_string(cells) + (cells == 1 ? " cell" : " cells") +
                         " where the first line has " + std::to_string(table_.uses.size()));
    }
  }

  const CsvTable& table_;
  CsvCells cells_;
  const char* counted_;  // up to here newlines are counted
  std::uint64_t line_;   // the line that it is in
  RowBlock block_;
  BlockWords words_;
};

class CsvSource final : public RowSource {
 public:
  CsvSource(const std::filesystem::path& path, const CsvOptions& options, std::size_t piece_bytes)
      : pieces_(path, TextPieces::Quotes::kHoldNewlines, options.skipped_lines, piece_bytes),
        parsing_(options.threads) {
    TextPiece first;
    if (!pieces_.next(first)) {
      throw UnusableData(path.string() + (options.skipped_lines == 0
                                              ? ": the file is empty"
                                              : ": there are no lines in it behind those that are "
                                                "skipped"));
    }
    std::string_view rows;
    table_ = table_of(path.string(), first.text, first.first_line, options, rows);
    const std::size_t skipped = first.text.size() - rows.size();
    const std::uint64_t line = first.first_line + static_cast<std::uint64_t>(std::ranges::count(
                                                      first.text.substr(0, skipped), '\n'));
    begin_parsing(std::move(first), skipped, line);
  }

  [[nodiscard]] const std::vector<std::string>& columns() const noexcept override {
    return table_.numbers;
  }
  [[nodiscard]] const std::string& label_column() const noexcept override { return table_.label; }
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
      if (block.rows() > 0) {
        return true;
      }
    }
  }

 private:
  void begin_parsing(TextPiece piece, std::size_t skipped, std::uint64_t line) {
    parsing_.begin([this, skipped, line, piece = std::move(piece)] {
      return PieceParser(table_, piece, skipped, line).parse();
    });
  }

  TextPieces pieces_;
  CsvTable table_;
  InOrder<RowBlock> parsing_;  // last: it uses table_
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
