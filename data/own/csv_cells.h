// The cells of one line of a table, one after the other.
//
// Values; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

// Takes a line's cells off the beginning of `text`, which ends with the last line.
class CsvCells {
 public:
  CsvCells(std::string_view text, char delimiter) noexcept : rest_(text), delimiter_(delimiter) {}

  // The next cell, without the quotes and the blanks around it; it is valid until the next call.
  // REQUIRES: !at_end().
  [[nodiscard]] std::string_view next();
  // The next cell, if it is a number as most are written, with nothing around it; else nothing is
  // taken, and next() tells what there is. REQUIRES: !at_end().
  [[nodiscard]] bool next_number(float& number) noexcept;
  // Whether the last cell was its line's last one; the line's end has been taken then.
  [[nodiscard]] bool line_ended() const noexcept { return line_ended_; }
  // Whether the text is used up.
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty() && line_ended_; }
  // Whether that cell is not as RFC 4180 has them: a quote that nothing closes, or something
  // behind the one that does.
  [[nodiscard]] bool is_malformed() const noexcept { return is_malformed_; }
  // Whether next() has found that cell in quotes.
  [[nodiscard]] bool was_quoted() const noexcept { return was_quoted_; }
  // Takes an empty line off, if there is one.
  [[nodiscard]] bool skip_empty_line() noexcept;
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view quoted();
  std::string_view plain() noexcept;
  // Takes what separates cells or ends a line.
  void end_cell() noexcept;

  std::string_view rest_;
  char delimiter_;
  bool line_ended_ = true;
  bool is_malformed_ = false;
  bool was_quoted_ = false;
  std::string unescaped_;  // of a quoted cell with quotes in it
};

// All cells of the first line of `text`.
[[nodiscard]] std::vector<std::string> cells_of_line(std::string_view text, char delimiter);

// How long the number is that `text` begins with, if it has as few digits as most have: then
// `number` is it, as read_number() would have it, unless more of it follows (an exponent, say).
// Else 0.
[[nodiscard]] std::size_t short_number(std::string_view text, float& number) noexcept;

// Whether it is a number as tables have them, finite, of 32 bits: then `number` has it.
[[nodiscard]] bool read_number(std::string_view cell, float& number) noexcept;

}  // namespace disttf::data
