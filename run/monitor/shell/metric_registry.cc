#include "run/monitor/shell/metric_registry.h"

#include <cassert>
#include <cmath>

namespace disttf::roles {

Histogram::Histogram(std::span<const double> bounds, double scale)
    : bounds_(bounds), scale_(scale) {
  assert(bounds.size() <= kMostBounds);
  std::ranges::transform(bounds, limits_.begin(), [scale](double bound) {
    // Whole numbers: observe() adds integers, which needs no floating-point atomics.
    return static_cast<std::uint64_t>(std::llround(bound / scale));
  });
}

HistogramValue Histogram::value() const {
  HistogramValue value{.bounds = bounds_, .counts = {}};
  // Read before the counts, so that the mean never includes more than they count.
  value.sum = static_cast<double>(sum_.load(std::memory_order_relaxed)) * scale_;
  for (std::size_t each = 0; each <= bounds_.size(); ++each) {
    value.counts.push_back(counts_[each].load(std::memory_order_relaxed));
  }
  return value;
}

template <typename Value, typename... Arguments>
Value& MetricRegistry::add(Metric metric, std::vector<MetricLabel> labels, Arguments... arguments) {
  const std::scoped_lock lock(mutex_);
  return std::get<Value>(
      entries_.emplace_back(metric, std::move(labels), std::in_place_type<Value>, arguments...)
          .value);
}

Counter& MetricRegistry::counter(Metric metric, std::vector<MetricLabel> labels) {
  assert(row_of(metric).type == MetricType::kCounter);
  return add<Counter>(metric, std::move(labels));
}

Gauge& MetricRegistry::gauge(Metric metric, std::vector<MetricLabel> labels) {
  return add<Gauge>(metric, std::move(labels));
}

Histogram& MetricRegistry::histogram(Metric metric, std::vector<MetricLabel> labels) {
  constexpr double kNanosecond = 1e-9;
  const bool is_time = row_of(metric).unit == "seconds";
  return add<Histogram>(metric, std::move(labels), bounds_of(metric), is_time ? kNanosecond : 1.0);
}

void MetricRegistry::info(Metric metric, std::vector<MetricLabel> labels) {
  assert(row_of(metric).type == MetricType::kInfo);
  gauge(metric, std::move(labels)).set(1);
}

std::vector<MetricFamily> MetricRegistry::read() const {
  std::vector<MetricFamily> families;
  for (const MetricRow& row : metric_rows()) {
    // One family per row, so that each can be found by index, and the order is that of the table.
    families.push_back({.metric = row.metric, .samples = {}});
  }
  const std::scoped_lock lock(mutex_);
  for (const Entry& entry : entries_) {
    std::vector<MetricSample>& samples = families[static_cast<std::size_t>(entry.metric)].samples;
    if (const auto* const counter = std::get_if<Counter>(&entry.value)) {
      samples.push_back({.labels = entry.labels, .value = counter->value()});
    } else if (const auto* const histogram = std::get_if<Histogram>(&entry.value)) {
      samples.push_back({.labels = entry.labels, .value = histogram->value()});
    } else if (const auto& gauge = std::get<Gauge>(entry.value); gauge.has_value()) {
      samples.push_back({.labels = entry.labels, .value = gauge.value()});
    }
  }
  return families;
}

}  // namespace disttf::roles
