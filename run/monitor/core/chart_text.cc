#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "run/monitor/core/chart.h"
#include "run/monitor/core/text_table.h"
#include "text/shown_text.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kLeastRows = 4;  // of a panel's curves
constexpr std::size_t kMostRows = 20;  // more rows show no more
constexpr std::size_t kLeastColumns = 8;
constexpr std::size_t kFrameRows = 3;  // of a panel: legend, axis, labels of ticks
constexpr std::string_view kMarks = "*+ox#@%&";
// The terminal colours that are readable on black and on white.
constexpr std::array<const char*, 6> kColours = {"\x1b[34m", "\x1b[31m", "\x1b[32m",
                                                 "\x1b[35m", "\x1b[36m", "\x1b[33m"};
constexpr const char* kPlain = "\x1b[0m";

std::string utf8(char32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

// A grid of cells, each with a character and the number of its curve; (0, 0) is at the upper left.
// A Braille cell has two columns of four dots.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, bool dots)
      : columns_(columns), rows_(rows), dots_(dots), cells_(columns * rows) {}

  // Coordinates are 0..1; y grows upwards.
  void draw_line(const Point& from, const Point& to, std::size_t curve) {
    const Point a = dot_at(from);
    const Point b = dot_at(to);
    // One step for each dot in the longer direction, so that the line has no gaps; at least 1,
    // since it divides.
    const auto steps = std::lround(std::max({std::abs(a.x - b.x), std::abs(a.y - b.y), 1.0}));
    for (long each = 0; each <= steps; ++each) {
      const double share = static_cast<double>(each) / static_cast<double>(steps);
      set(std::round(a.x + (b.x - a.x) * share), std::round(a.y + (b.y - a.y) * share), curve);
    }
  }

  // A row as text, with blanks.
  [[nodiscard]] std::string row(std::size_t row, bool colour) const {
    std::string text;
    std::size_t last = 0;  // the curve whose colour is active; 0: none
    for (std::size_t column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[row * columns_ + column];
      if (colour && cell.curve != last && cell.bits != 0) {
        text += kColours.at((cell.curve - 1) % kColours.size());
        last = cell.curve;
      }
      text += cell.bits == 0 ? " "
              : dots_        ? utf8(0x2800U + cell.bits)
                             : std::string(1, kMarks.at((cell.curve - 1) % kMarks.size()));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return last == 0 ? text : text + kPlain;
  }

 private:
  struct Cell {
    std::uint32_t bits = 0;  // 0: the cell is empty
    std::size_t curve = 0;   // the last curve drawn here, from 1
  };

  [[nodiscard]] Point dot_at(const Point& place) const {
    const auto columns = static_cast<double>(columns_ * (dots_ ? 2 : 1) - 1);
    const auto rows = static_cast<double>(rows_ * (dots_ ? 4 : 1) - 1);
    return {std::round(std::clamp(place.x, 0.0, 1.0) * columns),
            std::round((1 - std::clamp(place.y, 0.0, 1.0)) * rows)};
  }

  void set(double dot_x, double dot_y, std::size_t curve) {
    // The bits in U+2800 of a cell's dots, column by column.
    constexpr std::array<std::uint32_t, 8> kBits = {0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80};
    const auto x = static_cast<std::size_t>(dot_x);
    const auto y = static_cast<std::size_t>(dot_y);
    Cell& cell = dots_ ? cells_[y / 4 * columns_ + x / 2] : cells_[y * columns_ + x];
    // A Braille cell keeps the dots of all curves; a mark shows the last curve only.
    if (cell.curve != curve + 1 && !dots_) {
      cell.bits = 0;
    }
    cell.bits |= dots_ ? kBits.at(x % 2 * 4 + y % 4) : 1U;
    cell.curve = curve + 1;
  }

  std::size_t columns_;
  std::size_t rows_;
  bool dots_;
  std::vector<Cell> cells_;
};

// The layout of a panel.
struct Frame {
  const TextStyle& style;
  std::size_t labels = 0;   // columns for the labels of ticks on the left
  std::size_t columns = 0;  // for the curves
  std::size_t rows = 0;
};

// "loss   * a   + b": the panel's name and, for several curves, their marks.
std::string legend_of(const Panel& panel, const Frame& frame, bool dots) {
  std::string text = panel.name;
  std::size_t width = shown_width(text);
  for (std::size_t each = 0; each < panel.curves.size(); ++each) {
    const std::string& name = panel.curves[each].name;
    // The panel's name says it already.
    if (panel.curves.size() == 1 && name == panel.name) {
      return text;
    }
    const std::string mark = dots ? utf8(0x28FFU) : std::string(1, kMarks.at(each % kMarks.size()));
    // 5: three blanks, the mark and a blank.
    const std::size_t more = 5 + shown_width(name);
    const bool fits = width + more <= frame.style.columns;
    text += fits ? "   " : "\n  ";
    width = fits ? width + more : more - 1;
    text += frame.style.colour ? kColours.at(each % kColours.size()) + mark + kPlain : mark;
    text += " " + cut_to_width(name, frame.style.columns - 4);
  }
  return text;
}

void draw_curves(const Panel& panel, const Axis& x, const Axis& y, Canvas& canvas) {
  for (std::size_t curve = 0; curve < panel.curves.size(); ++curve) {
    const Point* before = nullptr;
    Point from;
    for (const Point& point : panel.curves[curve].points) {
      if (!is_shown(panel, point)) {
        continue;
      }
      const Point to{x.place_of(point.x), y.place_of(point.y)};
      // The first point is a line to itself, so that a single point is visible.
      canvas.draw_line(before == nullptr ? to : from, to, curve);
      before = &point;
      from = to;
    }
  }
}

std::string right_aligned(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

// The axis below the curves, and the labels of its ticks.
std::string x_lines(const Axis& x, const std::string& x_name, const Frame& frame) {
  const bool unicode = frame.style.unicode;
  std::vector<std::string> line(frame.columns, unicode ? "─" : "-");
  std::string names(frame.labels + 2 + frame.columns, ' ');
  std::size_t free = 0;  // the first free column
  for (const Tick& tick : x.ticks) {
    const auto at = static_cast<std::size_t>(
        std::lround(x.place_of(tick.value) * static_cast<double>(frame.columns - 1)));
    line.at(at) = unicode ? "┬" : "+";
    const std::size_t middle = frame.labels + 1 + at;
    std::size_t begin = middle - std::min(middle, tick.name.size() / 2);
    begin = std::min(begin, names.size() - std::min(names.size(), tick.name.size()));
    // A label that would overlap the one before is left out.
    if (begin >= free && begin + tick.name.size() <= names.size()) {
      names.replace(begin, tick.name.size(), tick.name);
      free = begin + tick.name.size() + 1;
    }
  }
  if (free + x_name.size() + 1 <= names.size()) {
    names.replace(names.size() - x_name.size(), x_name.size(), x_name);
  }
  names.erase(names.find_last_not_of(' ') + 1);
  std::string text = std::string(frame.labels, ' ') + (unicode ? "└" : "+");
  for (const std::string& each : line) {
    text += each;
  }
  return text + "\n" + names + "\n";
}

std::string text_of_panel(const Panel& panel, const Axis& x, const Axis& y,
                          const std::string& x_name, const Frame& frame) {
  const bool unicode = frame.style.unicode;
  // Dots of several curves look the same without colours, so each curve then has a mark of its own.
  const bool dots = unicode && (frame.style.colour || panel.curves.size() == 1);
  Canvas canvas(frame.columns, frame.rows, dots);
  draw_curves(panel, x, y, canvas);
  std::vector<std::string> names(frame.rows);
  for (const Tick& tick : y.ticks) {
    const auto row =
        std::lround((1 - y.place_of(tick.value)) * static_cast<double>(frame.rows - 1));
    names.at(static_cast<std::size_t>(row)) = tick.name;
  }
  std::string text = legend_of(panel, frame, dots) + "\n";
  for (std::size_t row = 0; row < frame.rows; ++row) {
    std::string line = right_aligned(names[row], frame.labels);
    line += names[row].empty() ? (unicode ? "│" : "|") : (unicode ? "┤" : "+");
    line += canvas.row(row, frame.style.colour);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + x_lines(x, x_name, frame);
}

}  // namespace

std::string text_of(const Chart& chart, const TextStyle& style) {
  std::string text = chart.title.empty() ? "" : cut_to_width(chart.title, style.columns) + "\n";
  const std::size_t panels = std::max<std::size_t>(chart.panels.size(), 1);
  const std::size_t used = 1 + kFrameRows * panels + (chart.title.empty() ? 0 : 1);
  Frame frame{.style = style};
  frame.rows =
      std::clamp((style.rows - std::min(style.rows, used)) / panels, kLeastRows, kMostRows);
  std::vector<std::optional<Axis>> axes;
  for (const Panel& panel : chart.panels) {
    // A label on every second row at most. All panels have the same width for labels.
    axes.push_back(y_axis_of(panel, std::max<std::size_t>(frame.rows / 2, 2)));
    for (const Tick& tick : axes.back() ? axes.back()->ticks : std::vector<Tick>()) {
      frame.labels = std::max(frame.labels, tick.name.size());
    }
  }
  frame.columns =
      std::max(style.columns - std::min(style.columns, frame.labels + 2), kLeastColumns);
  // A label of the x axis takes up to about 12 columns.
  const std::optional<Axis> x = x_axis_of(chart, std::max<std::size_t>(frame.columns / 12, 2));
  for (std::size_t each = 0; each < chart.panels.size(); ++each) {
    const Panel& panel = chart.panels[each];
    text += x && axes[each] ? text_of_panel(panel, *x, *axes[each], chart.x_name, frame)
                            : panel.name + ": nothing to show\n";
  }
  return text;
}

std::string sparkline(std::span<const double> values, std::size_t width, bool unicode) {
  constexpr std::string_view kHeights = "_.-=+*%#";
  const std::size_t count = std::min(values.size(), width);
  std::vector<double> means;
  for (std::size_t each = 0; each < count; ++each) {
    // The groups differ by one value at most, and cover every value once.
    const std::size_t begin = each * values.size() / count;
    const std::size_t end = (each + 1) * values.size() / count;
    double sum = 0;
    for (const double value : values.subspan(begin, end - begin)) {
      sum += value;
    }
    means.push_back(sum / static_cast<double>(end - begin));
  }
  std::string text;
  for (const double mean : means) {
    const auto [least, most] = std::ranges::minmax(means);
    // Equal values have no range to divide by.
    const double place = most > least ? (mean - least) / (most - least) : 0;
    // Eight heights, from U+2581 to U+2588.
    const auto height = static_cast<std::uint32_t>(std::lround(place * 7));
    text += unicode ? utf8(0x2581U + height) : std::string(1, kHeights.at(height));
  }
  return text;
}

}  // namespace disttf::roles
