// Charts of runs: which of their series are drawn, and how.
//
// A run is given as the view of its records: the "run" and "series" of docs/plots.md. Unexpected
// fields count as missing.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/monitor/core/chart.h"

namespace disttf::roles {

struct PlottedRun {
  std::string name;  // its path, as given
  const nlohmann::ordered_json* view = nullptr;
};

struct PlotSettings {
  std::vector<std::string> series = {};  // empty: the losses and the test result
  std::size_t smooth = 1;                // each value is the mean of the last so many
  bool by_time = false;
  bool is_log = false;
};

// All series that a run may have but for the numbers of a user's program.
[[nodiscard]] std::span<const std::string_view> series_names() noexcept;
// The series that one of the runs has, in that order; then the program's, by name.
[[nodiscard]] std::vector<std::string> series_of(std::span<const PlottedRun> runs);

// The newest of a user's program's numbers, by the names of their series.
[[nodiscard]] std::vector<std::pair<std::string, double>> newest_numbers(
    const nlohmann::ordered_json& view);

// Losses share a panel, accuracies another; each run is a curve in each.
[[nodiscard]] Chart chart_of(std::span<const PlottedRun> runs, const PlotSettings& settings);

// The same as JSON: {"runs": [{"run": "DIR", "series": {"loss": {"steps": [], "times": [],
// "values": []}}}]}, smoothed if requested. One line, ending with a newline.
[[nodiscard]] std::string plot_json(std::span<const PlottedRun> runs, const PlotSettings& settings);

// Values in untrusted JSON, beside data/json/json_text.h: a missing one, or one of another type,
// reads as nullopt or empty. Nothing throws.

// A finite number with an absolute value of at most kMostShown (chart.h).
[[nodiscard]] std::optional<double> number_of(const nlohmann::ordered_json& json);
[[nodiscard]] std::optional<double> number_of(const nlohmann::ordered_json& json,
                                              std::string_view name);
[[nodiscard]] std::optional<double> number_at(const nlohmann::ordered_json& list, std::size_t at);
// A whole number of at least 0.
[[nodiscard]] std::optional<std::uint64_t> count_of(const nlohmann::ordered_json& json,
                                                    std::string_view name);
// On one line, without control characters; empty if there is no text.
[[nodiscard]] std::string text_of_field(const nlohmann::ordered_json& json, std::string_view name);

}  // namespace disttf::roles
