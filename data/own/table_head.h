// What the beginning of a table of text says: what separates its cells, whether its first line has
// names, and which. Training, predict and serve ask this one function.
//
// The delimiter is the one of , ; tab | that the first line has most of, outside of quotes. The
// first line has names where
//
//   - it has all names that are known: those of a model, or of another file of the set; or
//   - no cell of it is a number; or a cell is none, and the cell below is; or
//   - --label_column or --ignore_columns name a cell of it (a number that counts columns names
//     none); or
//   - all its cells are in quotes, and a number among them has one without quotes below; or
//   - it has one cell that is no number, and this is label, class, target or species, or the others
//     are 0, 1, 2, ... as pandas calls columns; and the rows below do not have that word as well;
//     or
//   - it is 0, 1, 2, ... alone, three cells at least: a warning says that it was taken for names.
//
// The last three are guesses, which are not made where names are known.
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
  // All of which a line of names has; 1, 2, ... say nothing about a file.
  std::vector<std::string> known_names{};
  bool may_guess = true;
};

struct TableHead {
  char delimiter = ',';
  // Of all columns, each once: as they are written, in UTF-8. A second x is x.1 and one without a
  // name Unnamed: 0, counted from 0, as pandas has them. Without a line of names 1, 2, ...
  std::vector<std::string> names;
  bool has_names = false;
  std::uint64_t line = 0;             // of the first line that is not empty
  std::string_view rows;              // of the text: from the first row on
  std::uint64_t rows_line = 0;        // of the first row
  std::vector<std::string> warnings;  // sentences on what was guessed or changed
};

// `text`: without a byte order mark; `line` is the number of its first line. Throws UnusableData
// with a sentence that begins with `where`: there is no line in it, or a name is too long.
[[nodiscard]] TableHead read_table_head(std::string_view text, std::uint64_t line,
                                        const TableHeadOptions& options, const std::string& where);

// Whether all `names` are numbers from 1 to `most`: those of columns without a line of names.
[[nodiscard]] bool are_numbered(const std::vector<std::string>& names, std::size_t most = SIZE_MAX);

// Whether `text` counts one of `count` columns, from 1: then `column` is it, from 0.
[[nodiscard]] bool counts_a_column(std::string_view text, std::size_t count, std::size_t& column);

inline constexpr std::string_view kLabelNames[] = {"label", "class", "target", "species"};

}  // namespace disttf::data
