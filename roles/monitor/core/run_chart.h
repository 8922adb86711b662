// Runs as charts: which of their series are drawn, and how.
//
// A run is the view that is made of its records: the "run" and "series" of docs/plots.md. What is
// none of what is expected in it is as good as not there.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roles/monitor/core/chart.h"

namespace disttf::roles {

struct PlottedRun {
  std::string name;  // where it lies, as it was asked for
  const nlohmann::ordered_json* view = nullptr;
};

struct PlotSettings {
  std::vector<std::string> series = {};  // empty: the losses, and what the test came to
  std::size_t smooth = 1;                // each value is the mean of so many, itself the last
  bool by_time = false;
  bool is_log = false;
};

// All that a run may have.
[[nodiscard]] std::span<const std::string_view> series_names() noexcept;
// Those that one of the runs has, in that order.
[[nodiscard]] std::vector<std::string> series_of(std::span<const PlottedRun> runs);

// Losses share a panel, accuracies another; a run is a curve in each.
[[nodiscard]] Chart chart_of(std::span<const PlottedRun> runs, const PlotSettings& settings);

// The same as JSON: {"runs": [{"run": "DIR", "series": {"loss": {"steps": [], "times": [],
// "values": []}}}]}, smoothed where that was asked for. On one line, which ends with a newline.
[[nodiscard]] std::string plot_json(std::span<const PlottedRun> runs, const PlotSettings& settings);

}  // namespace disttf::roles
