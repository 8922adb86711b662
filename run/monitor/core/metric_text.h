// The exposition of metrics: Prometheus' text format 0.0.4, or OpenMetrics 1.0 if requested.
//
// Pure functions on values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "run/monitor/core/metric_table.h"

namespace disttf::roles {

struct MetricLabel {
  std::string_view name;
  std::string value;
};

struct HistogramValue {
  std::span<const double> bounds;
  std::vector<std::uint64_t> counts;  // per bucket, not cumulative; one more than `bounds`
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

// The format that an Accept header asks for: OpenMetrics if a supported version is named and not
// ranked below plain text; else text, also for a malformed header.
[[nodiscard]] ExpositionFormat format_for(std::string_view accept);
// The Content-Type, without which Prometheus 3 rejects an answer.
[[nodiscard]] std::string_view content_type_of(ExpositionFormat format) noexcept;

// Omits families without samples. `task` is a label of every sample: textfiles of several tasks of
// one machine may be in one folder, where only the label distinguishes them.
[[nodiscard]] std::string exposition(std::span<const MetricFamily> families, std::string_view task,
                                     ExpositionFormat format);

}  // namespace disttf::roles
