// Values of metrics as a scraper reads them: Prometheus' text format 0.0.4, and OpenMetrics 1.0 for
// whoever asks for it.
//
// Pure functions on values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "roles/monitor/core/metric_table.h"

namespace disttf::roles {

struct MetricLabel {
  std::string_view name;
  std::string value;
};

struct HistogramValue {
  std::span<const double> bounds;
  std::vector<std::uint64_t> counts;  // of each bucket alone; one more than `bounds`
  double sum = 0;                     // in the metric's unit
};

struct MetricSample {
  std::vector<MetricLabel> labels;
  std::variant<std::uint64_t, double, HistogramValue> value;
};

struct MetricFamily {
  Metric metric = Metric::kBuildInfo;
  std::vector<MetricSample> samples;
};

enum class ExpositionFormat : std::uint8_t { kText, kOpenMetrics };

// What an Accept header asks for: OpenMetrics where it is named with a version that is written here
// and is not liked less than plain text; else text, also for what is no Accept header.
[[nodiscard]] ExpositionFormat format_for(std::string_view accept);
// Prometheus 3 refuses an answer whose Content-Type it cannot read.
[[nodiscard]] std::string_view content_type_of(ExpositionFormat format) noexcept;

// Families without samples are left out. `task` is a label of every sample: several tasks of one
// machine may be read from files of one folder, where nothing else would tell them apart.
[[nodiscard]] std::string exposition(std::span<const MetricFamily> families, std::string_view task,
                                     ExpositionFormat format);

}  // namespace disttf::roles
