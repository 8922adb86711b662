#include "run/monitor/core/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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

namespace {

// The smallest number of at least `least` that is 1, 2 or 5 times a power of ten.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0}) {
    // The tolerance keeps a step of 0.2 from becoming 0.5 where a logarithm was rounded.
    if (times * power >= least * (1 - 1e-9)) {
      return times * power;
    }
  }
  return 10 * power;
}

struct Unit {
  double size;
  const char* name;
};

// The unit for numbers up to `most` with ticks `step` apart.
Unit unit_of(double most, double step) {
  for (const Unit unit : {Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e3, "k"}}) {
    // With a smaller step the names of ticks would need more digits than without the unit.
    if (most >= 10 * unit.size && step >= unit.size / 10) {
      return unit;
    }
  }
  return {1, ""};
}

std::string name_of(double value, double most, double step) {
  // A multiple of the step near 0 may be -0 or 1e-17.
  if (std::abs(value) < step / 2) {
    return "0";
  }
  // Fixed notation would take more columns than a label has.
  if (most >= 1e13 || step < 1e-4) {
    return fmt::format("{:g}", value);
  }
  const Unit unit = unit_of(most, step);
  // As many digits as tell two neighbouring ticks apart.
  const double digits = -std::floor(std::log10(step / unit.size) + 1e-9);
  return fmt::format("{:.{}f}{}", value / unit.size, std::max(0, static_cast<int>(digits)),
                     unit.name);
}

// A tick of a logarithmic axis: 1, 2 or 5 times the power if `is_fine`, else the power itself.
double log_tick(double power, std::size_t which, bool is_fine) {
  constexpr std::array<double, 3> kTimes = {1, 2, 5};
  return std::pow(10, power) * (is_fine ? kTimes.at(which) : 1);
}

}  // namespace

// No division by 0: linear_axis() and log_axis() make no empty axis.
double Axis::place_of(double value) const {
  return is_log ? (std::log10(value) - std::log10(least)) / (std::log10(most) - std::log10(least))
                : (value - least) / (most - least);
}

Axis linear_axis(double least, double most, std::size_t ticks, bool widen) {
  const double size = std::max(std::abs(least), std::abs(most));
  // With a smaller range, steps would be lost in the digits of a double.
  if (most - least <= size * 1e-9) {
    const double room = size == 0 ? 1 : size / 10;
    least -= room;
    most += room;
  }
  const double step =
      round_step((most - least) / static_cast<double>(std::max<std::size_t>(ticks, 1)));
  Axis axis{.least = least, .most = most, .ticks = {}};
  if (widen) {
    axis.least = std::floor(least / step + 1e-9) * step;
    axis.most = std::ceil(most / step - 1e-9) * step;
  }
  const double first = std::ceil(axis.least / step - 1e-9);  // counted in steps from 0
  const double last = std::floor(axis.most / step + 1e-9);
  const double most_named = std::max(std::abs(axis.least), std::abs(axis.most));
  // Counted, since adding up a step would add up its rounding, too.
  for (int each = 0; first + each <= last; ++each) {
    const double value = (first + each) * step;
    axis.ticks.push_back({value, name_of(value, most_named, step)});
  }
  return axis;
}

Axis log_axis(double least, double most, std::size_t ticks) {
  const auto first = static_cast<int>(std::floor(std::log10(least)));
  const auto last = static_cast<int>(std::ceil(std::log10(most)));
  const int wanted = std::max(static_cast<int>(ticks), 1);
  // Three ticks for each power of ten if that gives few enough; else whole powers, and not all of
  // them.
  const bool is_fine = (last - first) * 3 <= wanted * 2;
  const int powers = is_fine ? 1 : std::max(1, (last - first + wanted - 1) / wanted);
  std::vector<double> all;
  // One further, so that a tick lies above the largest value.
  for (int power = first; power <= last + powers; power += powers) {
    for (std::size_t which = 0; which < (is_fine ? 3U : 1U); ++which) {
      all.push_back(log_tick(power, which, is_fine));
    }
  }
  // From the last tick not above `least` to the first not below `most`.
  const auto above = std::upper_bound(all.begin(), all.end(), least * (1 + 1e-9));
  const auto begin = above == all.begin() ? above : above - 1;
  const auto end =
      std::find_if(begin + 1, all.end(), [most](double each) { return each >= most * (1 - 1e-9); });
  Axis axis{
      .least = *begin, .most = end == all.end() ? all.back() : *end, .is_log = true, .ticks = {}};
  for (auto each = begin; each != all.end() && *each <= axis.most; ++each) {
    axis.ticks.push_back({*each, *each >= 1e4 || *each < 1e-3 ? fmt::format("{:.0e}", *each)
                                                              : fmt::format("{:g}", *each)});
  }
  return axis;
}

}  // namespace disttf::roles
