#include "roles/evaluator/best_metric.h"

#include <algorithm>
#include <cmath>

namespace disttf::roles {

std::string_view best_metric_name(BestMetric metric) noexcept {
  return kBestMetricNames[static_cast<std::size_t>(metric)];
}

std::optional<BestMetric> best_metric_from_name(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kBestMetricNames, name);
  return found == kBestMetricNames.end()
             ? std::nullopt
             : std::optional(static_cast<BestMetric>(found - kBestMetricNames.begin()));
}

std::optional<std::string> lacks_metric(BestMetric metric, const math::Evaluation& found) {
  const bool of_numbers = found.classes == 0;
  // Every kind of label has a loss; the other metrics belong to one kind.
  if (metric == BestMetric::kLoss || of_numbers == (metric != BestMetric::kAccuracy)) {
    return std::nullopt;
  }
  return "--keep_best: \"" + std::string(best_metric_name(metric)) +
         (of_numbers ? "\" is of classes, and the labels of this run are numbers: loss, "
                       "absolute_error or squared_error"
                     : "\" is of labels that are numbers, and those of this run are classes: "
                       "accuracy or loss");
}

double value_of(BestMetric metric, const math::Evaluation& found) noexcept {
  switch (metric) {
    case BestMetric::kAccuracy:
      return found.accuracy();
    case BestMetric::kLoss:
      return found.loss;
    case BestMetric::kAbsoluteError:
      return found.absolute_error;
    case BestMetric::kSquaredError:
      return found.squared_error;
  }
  return 0;
}

// A value that is not a number is worse than any other.
bool is_better(BestMetric metric, double value, double than) noexcept {
  if (std::isnan(value)) {
    return false;
  }
  return std::isnan(than) || (metric == BestMetric::kAccuracy ? value > than : value < than);
}

}  // namespace disttf::roles
