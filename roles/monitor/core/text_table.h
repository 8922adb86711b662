// Tables and numbers as people read them in a terminal.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::roles {

struct TextColumn {
  std::string title;
  // Where not all columns fit, those of the highest number go first; one of 0 stays.
  unsigned leaves = 0;
};

using TextRow = std::vector<std::string>;  // a cell for each column

struct TextTable {
  std::vector<TextColumn> columns;
  std::vector<TextRow> rows;
  // Of each column; empty: as wide as the longest cell.
  std::vector<std::size_t> least_widths = {};
};

// The columns of a table without rows: "TASK HOST:2 SIZE", titles with their `leaves`.
[[nodiscard]] TextTable table_with(std::string_view columns);

// Columns two blanks apart, each as wide as its longest cell; nothing behind the last one. Of what
// others have written, control characters are left out. `width`: of the terminal; 0: any.
[[nodiscard]] std::string text_of(const TextTable& table, std::size_t width = 0,
                                  bool with_titles = true);

// How wide each column is.
[[nodiscard]] std::vector<std::size_t> widths_of(const TextTable& table);

// How many columns of a terminal valid UTF-8 takes, each code point counted as one.
[[nodiscard]] std::size_t shown_width(std::string_view utf8) noexcept;
// The same text, or so many columns of it.
[[nodiscard]] std::string cut_to_width(std::string_view utf8, std::size_t width);

// Parts joined by ", ", in lines of at most `width` columns where the parts are no longer; 0: one
// line. Ends with a newline.
[[nodiscard]] std::string wrapped(const std::vector<std::string>& parts, std::size_t width);

[[nodiscard]] std::string bytes_text(double bytes);       // "318 kB"
[[nodiscard]] std::string duration_text(double seconds);  // "0:42", "1:02:03"
[[nodiscard]] std::string percent_text(double share);     // "41 %"
[[nodiscard]] std::string time_text(double since_epoch);  // "2026-11-21T10:17:27Z"

}  // namespace disttf::roles
