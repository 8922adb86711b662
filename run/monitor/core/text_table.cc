#include "run/monitor/core/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

// UTF-8 continuation bytes begin no character.
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

// The numbers of the columns that fit.
std::vector<std::size_t> columns_that_fit(const TextTable& table,
                                          const std::vector<std::size_t>& widths,
                                          std::size_t width) {
  std::vector<std::size_t> fit;
  for (std::size_t each = 0; each < table.columns.size(); ++each) {
    fit.push_back(each);
  }
  const auto needed = [&] {
    std::size_t sum = 0;
    for (const std::size_t each : fit) {
      sum += widths[each] + (sum == 0 ? 0 : 2);
    }
    return sum;
  };
  const auto leaves = [&table](std::size_t each) { return table.columns[each].leaves; };
  // Drops the least important column until the rest fits.
  while (width != 0 && needed() > width) {
    const auto first = std::ranges::max_element(fit, {}, leaves);
    // Columns with 0 always stay; the line is cut off instead.
    if (leaves(*first) == 0) {
      break;
    }
    fit.erase(first);
  }
  return fit;
}

}  // namespace

// A character counts as one column, also where a terminal draws it wider.
std::size_t shown_width(std::string_view utf8) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(utf8, begins_character));
}

std::string cut_to_width(std::string_view utf8, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < utf8.size(); ++end) {
    if (begins_character(utf8[end]) && shown++ == width) {
      break;
    }
  }
  return std::string(utf8.substr(0, end));
}

TextTable table_with(std::string_view columns) {
  TextTable table;
  while (!columns.empty()) {
    std::string_view word = columns.substr(0, columns.find(' '));
    columns.remove_prefix(std::min(word.size() + 1, columns.size()));
    const std::size_t colon = word.find(':');
    table.columns.push_back({.title = std::string(word.substr(0, colon)),
                             .leaves = colon == std::string_view::npos
                                           ? 0U
                                           : static_cast<unsigned>(word.back() - '0')});
  }
  return table;
}

std::vector<std::size_t> widths_of(const TextTable& table) {
  std::vector<std::size_t> widths = table.least_widths;
  widths.resize(table.columns.size());
  for (std::size_t each = 0; each < widths.size(); ++each) {
    widths[each] = std::max(widths[each], shown_width(table.columns[each].title));
    for (const TextRow& row : table.rows) {
      widths[each] = std::max(widths[each], shown_width(net::one_line(row[each])));
    }
  }
  return widths;
}

std::string text_of(const TextTable& table, std::size_t width, bool with_titles) {
  const std::vector<std::size_t> widths = widths_of(table);
  const std::vector<std::size_t> fit = columns_that_fit(table, widths, width);
  const auto line_of = [&](const auto& cell_of) {
    std::string line;
    for (const std::size_t each : fit) {
      const std::string cell = net::one_line(cell_of(each));
      line += cell + std::string(widths[each] - shown_width(cell) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return (width == 0 ? line : cut_to_width(line, width)) + "\n";
  };
  std::string text;
  if (with_titles) {
    text += line_of([&table](std::size_t each) { return table.columns[each].title; });
  }
  for (const TextRow& row : table.rows) {
    text += line_of([&row](std::size_t each) { return row[each]; });
  }
  return text;
}

std::string wrapped(const std::vector<std::string>& parts, std::size_t width) {
  std::string text;
  std::size_t used = 0;  // of the line
  for (const std::string& part : parts) {
    const std::string clean = width == 0 ? part : cut_to_width(part, width);
    if (used != 0) {
      const bool fits = width == 0 || used + 2 + shown_width(clean) <= width;
      text += fits ? ", " : "\n";
      used = fits ? used + 2 : 0;
    }
    text += clean;
    used += shown_width(clean);
  }
  return text + "\n";
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  // 999.5 would be shown as 1000.
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  // 9.95 would be shown as 10.0.
  return fmt::format("{:.{}f} {}", bytes, unit != 0 && bytes < 9.95 ? 1 : 0, kUnits.at(unit));
}

std::string duration_text(double seconds) {
  // A century: a double far beyond that may not be a whole number.
  constexpr double kMost = 100.0 * 366 * 86'400;
  const auto whole = static_cast<std::uint64_t>(std::clamp(std::round(seconds), 0.0, kMost));
  const std::uint64_t minutes = whole / 60;
  return minutes < 60 ? fmt::format("{}:{:02}", minutes, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

std::string percent_text(double share) {
  // A record may have any number; the limits keep the column narrow.
  return fmt::format("{:.0f} %", std::clamp(share, -10.0, 1e4) * 100);
}

std::string time_text(double since_epoch) {
  // A peer's time: limited to four digits of a year.
  const auto seconds = static_cast<std::time_t>(std::clamp(since_epoch, 0.0, 2.5e11));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace disttf::roles
