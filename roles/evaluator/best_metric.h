// --keep_best: the metric by which one checkpoint of a run is better than another. All metrics are
// of the validation set: a choice by the test set would make its result meaningless for new
// examples.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "math/evaluation.h"

namespace disttf::roles {

enum class BestMetric : std::uint8_t { kAccuracy, kLoss, kAbsoluteError, kSquaredError };
inline constexpr std::array<std::string_view, 4> kBestMetricNames = {
    "accuracy", "loss", "absolute_error", "squared_error"};
[[nodiscard]] std::string_view best_metric_name(BestMetric metric) noexcept;
[[nodiscard]] std::optional<BestMetric> best_metric_from_name(std::string_view name) noexcept;

// Returns why the evaluation has no such metric, if it has none.
[[nodiscard]] std::optional<std::string> lacks_metric(BestMetric metric,
                                                      const math::Evaluation& found);
// REQUIRES: the evaluation has the metric.
[[nodiscard]] double value_of(BestMetric metric, const math::Evaluation& found) noexcept;
// Strictly better; NaN is worse than any number.
[[nodiscard]] bool is_better(BestMetric metric, double value, double than) noexcept;

}  // namespace disttf::roles
