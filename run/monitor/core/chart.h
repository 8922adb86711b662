// Charts: axes, curves and panels, as text and as SVG.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace disttf::roles {

// The largest absolute value in a plot: sums and differences of such numbers are finite.
inline constexpr double kMostShown = 1e30;

struct Tick {
  double value = 0;
  std::string name;  // "0.25", "20k", "1e-05"
};

// Its range, the positions of its ticks, and their labels.
struct Axis {
  double least = 0;
  double most = 1;  // above `least`
  bool is_log = false;
  std::vector<Tick> ticks;  // from `least` to `most`, in order

  // 0 at `least`, 1 at `most`.
  [[nodiscard]] double place_of(double value) const;
};

// Ticks are 1, 2 or 5 times a power of ten apart; there are about `ticks` of them at most. `widen`:
// the axis begins and ends at a tick. Adds room if all values are equal. REQUIRES: least <= most,
// both at most kMostShown.
[[nodiscard]] Axis linear_axis(double least, double most, std::size_t ticks, bool widen);

// Ticks are powers of ten, and twice and five times these if there are few. The axis begins and
// ends at a tick. REQUIRES: 0 < least <= most <= kMostShown.
[[nodiscard]] Axis log_axis(double least, double most, std::size_t ticks);

struct Point {
  double x = 0;
  double y = 0;
};

struct Curve {
  std::string name;
  std::vector<Point> points;  // in ascending x; all at most kMostShown
};

// Curves of one quantity, which share axes.
struct Panel {
  std::string name;  // of the quantity, on the y axis
  bool is_log = false;
  std::vector<Curve> curves;
};

// Panels above each other, with a common x axis.
struct Chart {
  std::string title;
  std::string x_name;
  std::vector<Panel> panels;
};

// nullopt: there are no points.
[[nodiscard]] std::optional<Axis> x_axis_of(const Chart& chart, std::size_t ticks);
[[nodiscard]] std::optional<Axis> y_axis_of(const Panel& panel, std::size_t ticks);

// Whether the panel can show the point: a logarithmic panel shows only y > 0.
[[nodiscard]] bool is_shown(const Panel& panel, const Point& point);

// Curves as SVG 1.1, for browsers, editors and documents.
//
// Curves differ in colour and in dashes, so that either suffices; text stays text; light and dark
// follow the reader's preference. Equal charts give equal bytes.
[[nodiscard]] std::string svg_of(const Chart& chart);

// Curves as text: Braille dots if the terminal shows them, else characters.

// What a terminal, or another output for text, can show.
struct TextStyle {
  std::size_t columns = 80;
  std::size_t rows = 24;
  bool unicode = false;
  bool colour = false;
};

// Lines of at most `columns` characters; `rows` lines, or more if needed: each panel has at least
// four rows for its curves. Colours distinguish the curves of a panel, or without colours their
// characters. Ends with a newline.
[[nodiscard]] std::string text_of(const Chart& chart, const TextStyle& style);

// All values in a row of at most `width` characters, each the mean of its share; the lowest value
// is the lowest character.
[[nodiscard]] std::string sparkline(std::span<const double> values, std::size_t width,
                                    bool unicode);

}  // namespace disttf::roles
