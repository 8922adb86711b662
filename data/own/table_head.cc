#include "data/own/table_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <set>
#include <system_error>

#include "data/own/class_name.h"
#include "data/own/csv_cells.h"
#include "data/own/lower_case.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"
#include "data/own/text_encoding.h"

namespace disttf::data {
namespace {

constexpr std::array<char, 4> kDelimiters = {',', ';', '\t', '|'};
// The number of rows that are searched for the word of the first line.
constexpr std::size_t kRowsLookedAt = 1000;
// With fewer cells, 0, 1, ... may be a row of data.
constexpr std::size_t kFewestCounted = 3;

bool is_number(const std::string& cell) {
  float ignored = 0;
  return read_number(cell, ignored);
}

// Returns the text up to the first newline outside quotes.
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
    // A delimiter inside quotes belongs to a cell and proves nothing.
    const auto* const found = std::ranges::find(kDelimiters, c);
    if (!is_quoted && found != kDelimiters.end()) {
      ++counts.at(static_cast<std::size_t>(found - kDelimiters.begin()));
    }
  }
  return kDelimiters.at(
      // Of equal counts the first delimiter of the list wins; a line without any is one cell with a
      // comma as delimiter.
      static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin()));
}

// The first line and the lines below it.
class FirstLine {
 public:
  FirstLine(std::string_view line, std::string_view below, char delimiter)
      : delimiter_(delimiter), below_(below), cells_(cells_of_line(line, delimiter)) {
    quoted_ = quotes_of_line(line, delimiter);
    if (!below.empty()) {
      CsvCells rows(below, delimiter);
      // The second line is the first one below that has cells.
      while (rows.skip_empty_line()) {
      }
      if (!rows.rest().empty()) {
        second_quoted_ = quotes_of_line(rows.rest(), delimiter);
        second_ = cells_of_line(rows.rest(), delimiter);
      }
    }
  }

  [[nodiscard]] const std::vector<std::string>& cells() const noexcept { return cells_; }

  [[nodiscard]] bool is_surely_names() const {
    // Rows of data have at least one number, so a line without any consists of names.
    if (std::ranges::none_of(cells_, is_number)) {
      return true;
    }
    for (std::size_t i = 0; i < std::min(cells_.size(), second_.size()); ++i) {
      // A column of numbers whose first cell is not one has a name on top.
      if (!is_number(cells_[i]) && is_number(second_[i])) {
        return true;
      }
    }
    return false;
  }
  // Returns whether every cell is quoted and an unquoted number stands below one of them.
  [[nodiscard]] bool alone_has_quotes() const {
    // Some writers quote names but not numbers. That shows names even where one is a number, such
    // as "2020".
    if (std::ranges::find(quoted_, false) != quoted_.end()) {
      return false;
    }
    for (std::size_t i = 0; i < std::min(cells_.size(), second_.size()); ++i) {
      if (is_number(cells_[i]) && is_number(second_[i]) && !second_quoted_[i]) {
        return true;
      }
    }
    return false;
  }
  // Returns whether one word is a label's name, or stands among 0, 1, 2, ..., and occurs in no row.
  [[nodiscard]] bool has_one_name() const {
    const auto word = std::ranges::find_if_not(cells_, is_number);
    if (word == cells_.end() || second_.empty() ||
        !std::all_of(word + 1, cells_.end(), is_number)) {
      return false;
    }
    const std::string small = lower_case(*word);
    const bool is_label = std::ranges::find(kLabelNames, small) != std::end(kLabelNames);
    return (is_label || numbers_count()) &&
           !is_in_rows(static_cast<std::size_t>(word - cells_.begin()), *word);
  }
  // Returns whether the cells are 0, 1, 2, ... and nothing else.
  [[nodiscard]] bool counts() const {
    return cells_.size() >= kFewestCounted && !second_.empty() &&
           std::ranges::all_of(cells_, is_number) && numbers_count();
  }

 private:
  // Returns whether the numbers among the cells are 0, 1, 2, ... in this order.
  [[nodiscard]] bool numbers_count() const {
    std::size_t next = 0;
    for (const std::string& cell : cells_) {
      if (!is_number(cell)) continue;
      if (cell != std::to_string(next)) return false;
      ++next;
    }
    return next > 0;
  }
  [[nodiscard]] bool is_in_rows(std::size_t column, const std::string& word) const {
    CsvCells rows(below_, delimiter_);
    for (std::size_t row = 0; row < kRowsLookedAt && !rows.at_end(); ++row) {
      if (rows.skip_empty_line()) continue;
      if (rows.at_end()) break;
      std::size_t at = 0;
      do {
        if (rows.next() == word && at == column) return true;
        ++at;
      } while (!rows.line_ended());
    }
    return false;
  }
  static std::vector<bool> quotes_of_line(std::string_view text, char delimiter) {
    std::vector<bool> quoted;
    CsvCells line(text, delimiter);
    do {
      static_cast<void>(line.next());
      quoted.push_back(line.was_quoted());
    } while (!line.line_ended());
    return quoted;
  }

  char delimiter_;
  std::string_view below_;
  std::vector<std::string> cells_;
  std::vector<bool> quoted_;
  std::vector<std::string> second_;  // empty: there is no second line
  std::vector<bool> second_quoted_;
};

// Returns distinct names in UTF-8, with the suffixes that pandas uses.
std::vector<std::string> unique_names(const std::vector<std::string>& cells,
                                      const std::string& where,
                                      std::vector<std::string>& warnings) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    names.push_back(cells[i].empty() ? "Unnamed: " + std::to_string(i) : utf8_of(cells[i]));
    if (!is_utf8(cells[i])) {
      warnings.push_back(where + ": the column \"" + printable(cells[i]) +
                         "\" is not UTF-8; it is read as Windows-1252, \"" +
                         printable(names.back()) + "\"");
    }
  }
  // All names of the file, so that a generated one does not collide with a later column's.
  std::set<std::string> taken(names.begin(), names.end());
  std::set<std::string> seen;
  for (std::string& name : names) {
    if (seen.insert(name).second) continue;
    std::string other;
    for (std::size_t number = 1; other.empty() || taken.contains(other); ++number) {
      other = name + "." + std::to_string(number);
    }
    warnings.push_back(where + ": more than one column is named \"" + printable(name) +
                       "\"; a later one is read as \"" + printable(other) + "\"");
    taken.insert(other);
    seen.insert(other);
    name = other;
  }
  return names;
}

bool has_all(const std::vector<std::string>& names, const std::vector<std::string>& wanted) {
  const std::set<std::string_view> there(names.begin(), names.end());
  return std::ranges::all_of(wanted,
                             [&there](const std::string& each) { return there.contains(each); });
}

void check_lengths(const std::vector<std::string>& names, const std::string& place) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].size() > kMostNameBytes) {
      throw UnusableData(place + ", column " + std::to_string(i + 1) + ": its name has " +
                         std::to_string(names[i].size()) + " bytes; at most " +
                         std::to_string(kMostNameBytes) + " are allowed");
    }
  }
}

bool are_names(const FirstLine& first, const std::vector<std::string>& names,
               const TableHeadOptions& options, const std::string& where,
               std::vector<std::string>& warnings) {
  // A first file with names has decided: the others must have the same names and guess nothing.
  const bool is_known = !are_numbered(options.known_names);
  if (first.is_surely_names() || (is_known && has_all(names, options.known_names))) {
    return true;
  }
  if (is_known || !options.may_guess) {
    return false;
  }
  const auto is_named = [&names](const std::string& flag) {
    std::size_t ignored = 0;
    // A flag that is a valid column number proves nothing about names.
    return !counts_a_column(flag, names.size(), ignored) &&
           std::ranges::find(names, flag) != names.end();
  };
  if (first.alone_has_quotes() || first.has_one_name() ||
      std::ranges::any_of(options.named_columns, is_named)) {
    return true;
  }
  // The weakest evidence comes last and with a warning: the line could be a row of data.
  if (first.counts()) {
    warnings.push_back(where +
                       ": its first line, 0, 1, 2 and so on, is used as column names, "
                       "as pandas writes them");
    return true;
  }
  return false;
}

}  // namespace

bool are_numbered(const std::vector<std::string>& names, std::size_t most) {
  std::size_t column = 0;
  return std::ranges::all_of(names, [&](const std::string& name) {
    return counts_a_column(name, most, column) && std::to_string(column + 1) == name;
  });
}

bool counts_a_column(std::string_view text, std::size_t count, std::size_t& column) {
  std::size_t number = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stopped != text.data() + text.size() || number < 1 ||
      number > count) {
    return false;
  }
  column = number - 1;
  return true;
}

TableHead read_table_head(std::string_view text, std::uint64_t line,
                          const TableHeadOptions& options, const std::string& where) {
  TableHead head;
  // The delimiter is not known yet; the newline as delimiter makes tabs count as blanks.
  CsvCells empty_lines(text, '\n');
  while (empty_lines.skip_empty_line()) ++line;
  head.rows = empty_lines.rest();
  head.line = head.rows_line = line;
  if (head.rows.empty()) {
    throw UnusableData(where + ": there are no lines in it");
  }
  const std::string_view first_line = first_line_of(head.rows);
  const std::string_view below = head.rows.substr(first_line.size());
  head.delimiter = most_frequent_delimiter(first_line);
  // Those lines were skipped before tabs were known to separate cells.
  const std::string_view skipped = text.substr(0, text.size() - head.rows.size());
  if (const std::size_t tab = skipped.find('\t');
      head.delimiter == '\t' && tab != std::string_view::npos) {
    const auto lines = std::ranges::count(skipped.substr(tab), '\n');
    throw UnusableData(where + ", line " +
                       std::to_string(line - static_cast<std::uint64_t>(lines)) +
                       ": all its cells are empty");
  }
  const FirstLine first(first_line, below, head.delimiter);
  std::vector<std::string> warnings;
  std::vector<std::string> names = unique_names(first.cells(), where, warnings);
  if (are_names(first, names, options, where, warnings)) {
    check_lengths(names, where + ", line " + std::to_string(line));
    head.has_names = true;
    head.names = std::move(names);
    head.warnings = std::move(warnings);
    head.rows = below;
    // A quoted name may contain newlines.
    head.rows_line += static_cast<std::uint64_t>(std::ranges::count(first_line, '\n'));
    return head;
  }
  for (std::size_t i = 1; i <= first.cells().size(); ++i) {
    head.names.push_back(std::to_string(i));
  }
  return head;
}

}  // namespace disttf::data
