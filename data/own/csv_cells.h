// Splits a line of a table into cells.
//
// Values; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

// Takes the cells of a line from the front of `text`, which ends with the last line.
class CsvCells {
 public:
  CsvCells(std::string_view text, char delimiter) noexcept : rest_(text), delimiter_(delimiter) {}

  // Returns the next cell, without quotes and surrounding blanks; valid until the next call.
  // REQUIRES: !at_end().
  [[nodiscard]] std::string_view next();
  // Takes the next cell if it is a number in a common form with nothing around it. Otherwise takes
  // nothing, and next() returns the cell. REQUIRES: !at_end().
  [[nodiscard]] bool next_number(float& number) noexcept;
  // Returns whether the last cell was the last one of its line; the line end has then been taken.
  [[nodiscard]] bool line_ended() const noexcept { return line_ended_; }
  // Returns whether the text is used up.
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty() && line_ended_; }
  // Returns whether the last cell violates RFC 4180: an unclosed quote, or text after the closing
  // quote.
  [[nodiscard]] bool is_malformed() const noexcept { return is_malformed_; }
  // Returns whether next() found the last cell in quotes.
  [[nodiscard]] bool was_quoted() const noexcept { return was_quoted_; }
  // Takes an empty line, if there is one.
  [[nodiscard]] bool skip_empty_line() noexcept;
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view quoted();
  std::string_view plain() noexcept;
  // Takes the separator or the line end.
  void end_cell() noexcept;

  std::string_view rest_;
  char delimiter_;
  bool line_ended_ = true;
  bool is_malformed_ = false;
  bool was_quoted_ = false;
  std::string unescaped_;  // a quoted cell that contains quotes
};

// Returns all cells of the first line of `text`.
[[nodiscard]] std::vector<std::string> cells_of_line(std::string_view text, char delimiter);

// Returns the length of the number at the start of `text`, and 0 if it does not have a common,
// short form. `number` then receives the value that read_number() would give, unless the number
// continues (with an exponent, for example).
[[nodiscard]] std::size_t short_number(std::string_view text, float& number) noexcept;

// Returns whether `cell` is a finite 32-bit number as tables write it; `number` then receives it.
[[nodiscard]] bool read_number(std::string_view cell, float& number) noexcept;

}  // namespace disttf::data
