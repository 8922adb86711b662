// Curves for a terminal (chart_text.h) or a file (chart_svg.h).
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "run/monitor/core/axis.h"

namespace disttf::roles {

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

}  // namespace disttf::roles
