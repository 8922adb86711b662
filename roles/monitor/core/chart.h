// Curves to be drawn: on a terminal (chart_text.h) or into a file (chart_svg.h).
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "roles/monitor/core/axis.h"

namespace disttf::roles {

struct Point {
  double x = 0;
  double y = 0;
};

struct Curve {
  std::string name;
  std::vector<Point> points;  // x never falls; all of kMostShown at most
};

// Curves of one quantity, which share their axes.
struct Panel {
  std::string name;  // of the quantity, which is up
  bool is_log = false;
  std::vector<Curve> curves;
};

// Panels one above the other, with one x.
struct Chart {
  std::string title;
  std::string x_name;
  std::vector<Panel> panels;
};

// nullopt: there is no point.
[[nodiscard]] std::optional<Axis> x_axis_of(const Chart& chart, std::size_t ticks);
[[nodiscard]] std::optional<Axis> y_axis_of(const Panel& panel, std::size_t ticks);

// What can be drawn of a panel: a logarithmic one has nothing at 0 or below.
[[nodiscard]] bool is_shown(const Panel& panel, const Point& point);

}  // namespace disttf::roles
