// The shortest text that reads back as the same number, in the form of std::to_chars(): "0.1",
// "1e+06", "-inf". The tables of std::to_chars() itself would take 134 KB of the executable. The
// digits come from an internal function of fmt, whose public ones give another form. Pure.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace disttf {

// `digits` have no zero at their end; the number is these times ten to `exponent`.
inline void append_shortest(std::string& text, std::string_view digits, int exponent) {
  const int count = static_cast<int>(digits.size());
  const int only_one = count == 1 ? 1 : 0;  // then scientific notation has no point
  // Fixed notation unless it is longer.
  if (exponent < only_one - count - 3 || exponent > 5 - only_one) {
    const int power = exponent + count - 1;
    text += digits[0];
    if (count > 1) {
      text += '.';
      text += digits.substr(1);
    }
    text += power < 0 ? "e-" : "e+";
    text += power > -10 && power < 10 ? "0" : "";
    text += fmt::format_int(power < 0 ? -power : power).c_str();
  } else if (-exponent >= count) {
    text += "0.";
    text.append(static_cast<std::size_t>(-exponent - count), '0');
    text += digits;
  } else {
    text += digits.substr(0, static_cast<std::size_t>(count + exponent));
    text += '.';
    text += digits.substr(static_cast<std::size_t>(count + exponent));
  }
}

template <std::floating_point T>
void append_shortest(std::string& text, T value) {
  const bool is_whole = std::isfinite(value) && std::trunc(value) == value;
  const auto decimal = std::isfinite(value) && value != 0
                           ? fmt::detail::dragonbox::to_decimal(std::fabs(value))
                           : fmt::detail::dragonbox::decimal_fp<T>{};
  if (std::signbit(value)) {
    text += '-';
  }
  if (!std::isfinite(value)) {
    text += std::isnan(value) ? "nan" : "inf";
    return;
  }
  const fmt::format_int digits(decimal.significand);
  const std::string_view shown(digits.data(), digits.size());
  // A whole number has all of its digits, though fewer would do.
  const bool is_fixed = decimal.exponent >= 0 && decimal.exponent <= (shown.size() == 1 ? 4 : 5);
  if (is_whole && is_fixed) {
    text += fmt::format("{:.0f}", std::fabs(value));
  } else {
    append_shortest(text, shown, decimal.exponent);
  }
}

template <std::floating_point T>
[[nodiscard]] std::string shortest_number(T value) {
  std::string text;
  append_shortest(text, value);
  return text;
}

}  // namespace disttf
