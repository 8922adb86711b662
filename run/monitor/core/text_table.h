// Tables and numbers for terminals.
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
  // If not all columns fit, those with the highest number are dropped first; 0 is never dropped.
  unsigned leaves = 0;
};

using TextRow = std::vector<std::string>;  // a cell for each column

struct TextTable {
  std::vector<TextColumn> columns;
  std::vector<TextRow> rows;
  // Per column; empty: as wide as the longest cell.
  std::vector<std::size_t> least_widths = {};
};

// The columns of a table without rows: "TASK HOST:2 SIZE", titles with their `leaves`.
[[nodiscard]] TextTable table_with(std::string_view columns);

// Columns are two blanks apart, each as wide as its longest cell; no blanks after the last. Removes
// control characters from cells. `width`: of the terminal; 0: unlimited.
[[nodiscard]] std::string text_of(const TextTable& table, std::size_t width = 0,
                                  bool with_titles = true);

// The width of each column.
[[nodiscard]] std::vector<std::size_t> widths_of(const TextTable& table);

// The number of terminal columns of valid UTF-8, counting each code point as one.
[[nodiscard]] std::size_t shown_width(std::string_view utf8) noexcept;
// The text, truncated to so many columns.
[[nodiscard]] std::string cut_to_width(std::string_view utf8, std::size_t width);

// The parts joined by ", ", in lines of at most `width` columns unless a part is longer; 0: one
// line. Ends with a newline.
[[nodiscard]] std::string wrapped(const std::vector<std::string>& parts, std::size_t width);

[[nodiscard]] std::string bytes_text(double bytes);       // "318 kB"
[[nodiscard]] std::string duration_text(double seconds);  // "0:42", "1:02:03"
[[nodiscard]] std::string percent_text(double share);     // "41 %"
[[nodiscard]] std::string time_text(double since_epoch);  // "2026-11-21T10:17:27Z"

}  // namespace disttf::roles
