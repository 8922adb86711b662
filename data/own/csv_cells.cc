#include "data/own/csv_cells.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "text/shown_text.h"

namespace disttf::data {
namespace {

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

// Reads digits that form an integer below 2^24, divided by a power of ten up to 10^10. Both are
// exact floats, so their quotient is the nearest float to the number (Clinger: How to read floating
// point numbers accurately, 1990). This is three times as fast as from_chars, which handles all
// other numbers.
std::size_t short_number(std::string_view text, float& number) noexcept {
  constexpr std::uint32_t kExact = 1U << 24U;
  constexpr std::array<float, 11> kPowers = {1.0F, 10.0F, 100.0F, 1e3F, 1e4F, 1e5F,
                                             1e6F, 1e7F,  1e8F,   1e9F, 1e10F};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const bool is_negative = text.starts_with('-');
  const char* at = begin + (is_negative ? 1 : 0);
  const char* const first = at;
  const char* point = nullptr;
  std::uint32_t digits = 0;
  // Stops before another digit could overflow: below 2^24, ten times the value plus 9 fits 32 bits.
  for (; at != end && digits < kExact; ++at) {
    if (*at >= '0' && *at <= '9') {
      digits = digits * 10 + static_cast<std::uint32_t>(*at - '0');
    } else if (*at == '.' && point == nullptr) {
      point = at;
    } else {
      break;
    }
  }
  const std::size_t decimals = point == nullptr ? 0 : static_cast<std::size_t>(at - point) - 1;
  // A point alone, or a sign alone, is no number.
  const bool has_digits = at - first > (point == nullptr ? 0 : 1);
  if (digits >= kExact || decimals >= kPowers.size() || !has_digits) {
    return 0;
  }
  const float magnitude = static_cast<float>(digits) / kPowers.at(decimals);
  number = is_negative ? -magnitude : magnitude;
  return static_cast<std::size_t>(at - begin);
}

std::string_view CsvCells::next() {
  is_malformed_ = false;
  // A tab that separates cells is not a blank.
  while (!rest_.empty() && rest_.front() != delimiter_ && is_blank(rest_.front())) {
    rest_.remove_prefix(1);
  }
  was_quoted_ = rest_.starts_with('"');
  const std::string_view cell = was_quoted_ ? quoted() : plain();
  end_cell();
  return cell;
}

bool CsvCells::next_number(float& number) noexcept {
  const std::size_t length = short_number(rest_, number);
  // A number at the very end of the text is left to next(), as is one with anything behind it, such
  // as an exponent or a blank.
  if (length == 0 || length == rest_.size() ||
      (rest_[length] != delimiter_ && rest_[length] != '\n')) {
    return false;
  }
  is_malformed_ = false;
  rest_.remove_prefix(length);
  end_cell();
  return true;
}

std::string_view CsvCells::quoted() {
  rest_.remove_prefix(1);
  // A cell without doubled quotes is a view of the text; only the others are copied.
  std::size_t end = rest_.find('"');
  std::string_view cell = rest_.substr(0, end);
  if (end != std::string_view::npos && rest_.substr(end + 1).starts_with('"')) {
    unescaped_.clear();
    for (;;) {
      unescaped_ += rest_.substr(0, end);
      if (end == std::string_view::npos || !rest_.substr(end + 1).starts_with('"')) break;
      unescaped_ += '"';
      rest_.remove_prefix(end + 2);
      end = rest_.find('"');
    }
    cell = unescaped_;
  }
  if (end == std::string_view::npos) {
    is_malformed_ = true;
    rest_ = {};
    return cell;
  }
  rest_.remove_prefix(end + 1);
  // Blanks may stand between the closing quote and the delimiter, and nothing else.
  is_malformed_ = !trimmed(plain()).empty();
  return cell;
}

std::string_view CsvCells::plain() noexcept {
  std::size_t end = 0;
  while (end < rest_.size() && rest_[end] != delimiter_ && rest_[end] != '\n') ++end;
  const std::string_view cell = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return trimmed(cell);
}

void CsvCells::end_cell() noexcept {
  // A CR before the newline has been trimmed from the cell as a blank.
  line_ended_ = rest_.empty() || rest_.front() == '\n';
  if (!rest_.empty()) {
    rest_.remove_prefix(1);
  }
}

bool CsvCells::skip_empty_line() noexcept {
  // Between delimiter tabs there are cells, even if they are empty.
  const std::size_t end = rest_.find_first_not_of(delimiter_ == '\t' ? " \r" : " \t\r");
  if (end == std::string_view::npos || rest_[end] == '\n') {
    const bool is_one = !rest_.empty();
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return is_one;
  }
  return false;
}

std::vector<std::string> cells_of_line(std::string_view text, char delimiter) {
  std::vector<std::string> cells;
  CsvCells line(text, delimiter);
  do {
    cells.emplace_back(line.next());
  } while (!line.line_ended());
  return cells;
}

bool read_number(std::string_view cell, float& number) noexcept {
  // from_chars accepts no plus sign, but "+-1" must stay an error.
  const bool has_plus = cell.starts_with('+') && !cell.starts_with("+-");
  const char* const begin = cell.data() + (has_plus ? 1 : 0);
  const char* const end = cell.data() + cell.size();
  float parsed = 0;
  auto result = std::from_chars(begin, end, parsed);
  if (result.ec == std::errc::result_out_of_range) {
    // Out of range: too large, or so small that 0 is the best result.
    double wide = 0;
    result = std::from_chars(begin, end, wide);
    if (result.ec == std::errc() && !(std::abs(wide) < std::numeric_limits<float>::max())) {
      return false;
    }
    parsed = static_cast<float>(wide);
  }
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(parsed)) {
    return false;
  }
  number = parsed;
  return true;
}

}  // namespace disttf::data
