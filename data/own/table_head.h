// Analyses the beginning of a text table: its cell separator, whether its first line contains
// names, and which names. Training, predict and serve use this one function.
//
// The delimiter is the one of , ; tab | that occurs most often in the first line, outside quotes.
// The first line contains names if
//
//  - it has all known names: those of a model, or of another file of the set; or
//   - no cell of it is a number; or a cell is not a number but the cell below is; or
//   - --label_column or --ignore_columns name a cell of it (a number that counts columns names
//     none); or
//   - all its cells are quoted, and a number among them has an unquoted number below; or
//   - exactly one cell is not a number, and it is label, class, target or species, or the others
//     are 0, 1, 2, ... as pandas names columns; and the rows below do not repeat that word; or
//   - it is 0, 1, 2, ..., at least three cells: a warning says that it was used as names.
//
// The last three rules are guesses, which do not apply if names are known.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

struct TableHeadOptions {
  std::vector<std::string> named_columns{};  // --label_column, --ignore_columns
  // All names of the expected line; 1, 2, ... carry no information about a file.
  std::vector<std::string> known_names{};
  bool may_guess = true;
};

struct TableHead {
  char delimiter = ',';
  // The distinct names of all columns, in UTF-8. As in pandas, a second x becomes x.1 and an empty
  // name Unnamed: 0, counted from 0. Without a line of names they are 1, 2, ...
  std::vector<std::string> names;
  bool has_names = false;
  std::uint64_t line = 0;             // number of the first line that is not empty
  std::string_view rows;              // the text from the first row on
  std::uint64_t rows_line = 0;        // line number of the first row
  std::vector<std::string> warnings;  // sentences about guesses and changes
};

// Analyses `text`, which has no byte order mark; `line` is the number of its first line. Throws
// UnusableData with a sentence that begins with `where` if there is no line or a name is too long.
[[nodiscard]] TableHead read_table_head(std::string_view text, std::uint64_t line,
                                        const TableHeadOptions& options, const std::string& where);

// Returns whether all `names` are numbers from 1 to `most`: the names of columns without a line of
// names.
[[nodiscard]] bool are_numbered(const std::vector<std::string>& names, std::size_t most = SIZE_MAX);

// Returns whether `text` is the number of one of `count` columns, from 1; `column` then receives
// it, from 0.
[[nodiscard]] bool counts_a_column(std::string_view text, std::size_t count, std::size_t& column);

inline constexpr std::string_view kLabelNames[] = {"label", "class", "target", "species"};

}  // namespace disttf::data
