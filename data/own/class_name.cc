#include "data/own/class_name.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

#include "data/own/text_encoding.h"

namespace disttf::data {
namespace {

// The number 0.`digits` times ten to the power of `exponent`. The digits neither begin nor end with
// 0; zero has no digits.
struct Decimal {
  bool is_negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};

std::size_t count_digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// Takes [eE][+-]?[0-9]+ off the front of `text`. Returns none if the text continues differently.
std::optional<std::int64_t> take_exponent(std::string_view& text) {
  // Enough for every exponent that kMostExponent allows, and no overflow is possible.
  constexpr std::size_t kMostDigits = 4;
  text.remove_prefix(1);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t length = count_digits(text);
  if (length == 0 || length > kMostDigits) return std::nullopt;
  std::int64_t exponent = 0;
  std::from_chars(text.data(), text.data() + length, exponent);
  text.remove_prefix(length);
  return is_negative ? -exponent : exponent;
}

// Returns none if `text` is not a decimal number, or is an identifier with a leading zero.
std::optional<Decimal> decimal_of(std::string_view text) {
  Decimal number;
  number.is_negative = text.starts_with('-');
  if (number.is_negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view whole = text.substr(0, count_digits(text));
  text.remove_prefix(whole.size());
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = text.substr(0, count_digits(text));
    text.remove_prefix(fraction.size());
  }
  // 007 is an identifier, such as a postal code: as a number it would be one class with 7.
  if ((whole.empty() && fraction.empty()) || (whole.size() > 1 && whole.front() == '0')) {
    return std::nullopt;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    const auto exponent = take_exponent(text);
    if (!exponent) return std::nullopt;
    number.exponent = *exponent;
  }
  if (!text.empty()) return std::nullopt;
  // From here on the point stands before the first digit.
  number.digits = std::string(whole) + std::string(fraction);
  number.exponent += static_cast<std::int64_t>(whole.size());
  const std::size_t zeros = std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, zeros);
  number.exponent -= static_cast<std::int64_t>(zeros);
  number.digits.resize(number.digits.find_last_not_of('0') + 1);
  // The limit guarantees that text_of() writes a form that this function reads.
  constexpr std::int64_t kMostExponent = 9'999;
  if (number.exponent > kMostExponent || number.exponent < -kMostExponent + 1) return std::nullopt;
  return number;
}

std::string text_of(const Decimal& number) {
  // Beyond these limits a number is written with an exponent.
  constexpr std::int64_t kMostWhole = 40;
  constexpr std::int64_t kMostZeros = 6;  // after the point
  if (number.digits.empty()) return "0";  // also for -0
  const std::string sign = number.is_negative ? "-" : "";
  const auto length = static_cast<std::int64_t>(number.digits.size());
  const std::int64_t point = number.exponent;
  if (point > 0 && point <= std::max(kMostWhole, length)) {
    if (point >= length) {
      return sign + number.digits + std::string(static_cast<std::size_t>(point - length), '0');
    }
    const auto at = static_cast<std::size_t>(point);
    return sign + number.digits.substr(0, at) + "." + number.digits.substr(at);
  }
  if (point <= 0 && point > -kMostZeros) {
    return sign + "0." + std::string(static_cast<std::size_t>(-point), '0') + number.digits;
  }
  const std::string rest = number.digits.substr(1);
  return sign + number.digits.substr(0, 1) + (rest.empty() ? "" : "." + rest) + "e" +
         std::to_string(point - 1);
}

}  // namespace

std::string class_name_of(std::string_view text) {
  const auto number = decimal_of(text);
  // Numbers in one form, so that 1, 1.0 and 1e0 are the same class in files of different writers.
  return number ? text_of(*number) : utf8_of(text);
}

bool is_number_name(std::string_view name) { return decimal_of(name).has_value(); }

}  // namespace disttf::data
