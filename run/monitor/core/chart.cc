#include "run/monitor/core/chart.h"

#include <algorithm>

namespace disttf::roles {
namespace {

struct Span {
  double least = 0;
  double most = 0;
};

// Extends `span` by the coordinate `of` of the shown points.
template <typename Of>
void widen_to(std::optional<Span>& span, const Panel& panel, Of of) {
  for (const Curve& curve : panel.curves) {
    for (const Point& point : curve.points) {
      if (is_shown(panel, point)) {
        const double value = of(point);
        span = span ? Span{std::min(span->least, value), std::max(span->most, value)}
                    : Span{value, value};
      }
    }
  }
}

}  // namespace

// A logarithmic axis has no place for 0 and below.
bool is_shown(const Panel& panel, const Point& point) { return !panel.is_log || point.y > 0; }

std::optional<Axis> x_axis_of(const Chart& chart, std::size_t ticks) {
  std::optional<Span> span;
  // All panels share the x axis, so that they can be compared.
  for (const Panel& panel : chart.panels) {
    widen_to(span, panel, [](const Point& point) { return point.x; });
  }
  if (!span) {
    return std::nullopt;
  }
  // A chart that begins close to 0 begins at 0.
  const bool begins = span->least > 0 && span->least < span->most / 20;
  return linear_axis(begins ? 0 : span->least, span->most, ticks, /*widen=*/false);
}

std::optional<Axis> y_axis_of(const Panel& panel, std::size_t ticks) {
  std::optional<Span> span;
  widen_to(span, panel, [](const Point& point) { return point.y; });
  if (!span) {
    return std::nullopt;
  }
  return panel.is_log ? log_axis(span->least, span->most, ticks)
                      : linear_axis(span->least, span->most, ticks, /*widen=*/true);
}

}  // namespace disttf::roles
