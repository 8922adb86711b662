// Measures a synchronous step as a cluster grows: more parameters, more ps, more workers. No
// gradient is computed, so the cost per byte, per ps and per worker is visible.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/benchmarks.h"
#include "bench/exchange.h"

namespace disttf::bench {
namespace {

// A growing dimension, and the points on it.
struct Curve {
  const char* name;
  const char* unit;  // the unit of the divisor of the cost
  std::vector<std::size_t> sizes;
  std::size_t per_unit;  // 1000: sizes are counted in thousands
  ClusterShape (*shape)(std::size_t size);
};

const std::array kCurves = {
    Curve{"scaling/parameters",
          "1000_parameters",
          {10'000, 100'000, 1'000'000, 10'000'000, 100'000'000},
          1000,
          [](std::size_t size) { return ClusterShape{.model = model_of(size)}; }},
    Curve{"scaling/ps",
          "ps",
          {1, 2, 4, 8},
          1,
          [](std::size_t size) { return ClusterShape{.model = model_of(1'000'000), .ps = size}; }},
    Curve{
        "scaling/workers",
        "worker",
        {1, 2, 4, 8, 16, 32, 64},
        1,
        [](std::size_t size) { return ClusterShape{.model = model_of(10'000), .workers = size}; }},
};

// Computes the cost of each additional unit. It is constant on a straight line; beyond a knee it
// rises.
std::map<std::string, double> per_unit(const Curve& curve, std::size_t point,
                                       const std::vector<double>& medians) {
  const auto units = [&](std::size_t index) {
    return static_cast<double>(curve.sizes[index]) / static_cast<double>(curve.per_unit);
  };
  const std::string unit = curve.unit;
  const double own = medians[point] / units(point);
  std::map<std::string, double> costs = {{"us_per_" + unit, own}};
  if (point > 0) {
    costs["us_per_further_" + unit] =
        (medians[point] - medians[point - 1]) / (units(point) - units(point - 1));
    costs["per_unit_ratio"] = own / (medians[point - 1] / units(point - 1));
  }
  return costs;
}

// Returns whether the curve is wanted: all of its points, because each is compared with the
// previous one.
bool is_wanted(const Curve& curve, const JobOptions& options) {
  return std::ranges::any_of(curve.sizes, [&](std::size_t size) {
    const std::string name = std::string(curve.name) + "/" + std::to_string(size);
    return options.wants(name + "/raw") || options.wants(name + "/tcp") ||
           options.wants(name + "/shm");
  });
}

void run_curve(const Curve& curve, const JobOptions& options, Reporter& reporter) {
  std::map<std::string, std::vector<double>> medians;  // by side, then by point
  for (std::size_t point = 0; point < curve.sizes.size(); ++point) {
    const std::string name = std::string(curve.name) + "/" + std::to_string(curve.sizes[point]);
    const ClusterShape shape = curve.shape(curve.sizes[point]);
    if (options.quick && point > 1) {
      return;
    }
    if (!fits(shape)) {
      std::fprintf(stderr, "no %s: it needs more memory than is free\n", name.c_str());
      return;
    }
    for (const Side& side : measure_sides(shape, options.repetitions, options.quick)) {
      std::vector<double>& line = medians[side.name];
      line.push_back(median(side.times));
      Figure figure = side.figure(name + "/" + side.name, name + "/raw");
      figure.extras = per_unit(curve, point, line);
      reporter.add(figure);
    }
  }
}

}  // namespace

void run_scaling(const JobOptions& options, Reporter& reporter) {
  for (const Curve& curve : kCurves) {
    if (is_wanted(curve, options)) {
      run_curve(curve, options, reporter);
    }
  }
}

}  // namespace disttf::bench
