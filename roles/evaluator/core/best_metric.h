// --keep_best: by what one checkpoint of a run is better than another. All are of the validation
// set: what is chosen by the test set says nothing any more of how it does on new examples.
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

// Why there is no such figure of that evaluation, if there is none.
[[nodiscard]] std::optional<std::string> lacks_metric(BestMetric metric,
                                                      const math::Evaluation& found);
// REQUIRES: it does not lack it.
[[nodiscard]] double value_of(BestMetric metric, const math::Evaluation& found) noexcept;
// Strictly; what is no number is better than nothing, and nothing is worse than it.
[[nodiscard]] bool is_better(BestMetric metric, double value, double than) noexcept;

}  // namespace disttf::roles
