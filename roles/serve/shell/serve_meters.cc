#include "roles/serve/shell/serve_meters.h"

#include <algorithm>
#include <string>

namespace disttf::roles {
namespace {

Counter& loads(MetricRegistry& metrics, const char* result) {
  return metrics.counter(Metric::kServeModelLoads, {{.name = "result", .value = result}});
}

}  // namespace

ServeMeters::ServeMeters(MetricRegistry& metrics, std::size_t threads)
    : seconds(metrics.histogram(Metric::kServeSeconds)),
      rows(metrics.counter(Metric::kServeRows)),
      batch_rows(metrics.histogram(Metric::kServeBatchRows)),
      connections(metrics.gauge(Metric::kServeConnections)),
      version(metrics.gauge(Metric::kServeModelVersion)),
      loaded(loads(metrics, "served")),
      refused(loads(metrics, "refused")),
      ready(metrics.gauge(Metric::kServeReady)),
      range_warnings(metrics.counter(Metric::kServeRangeWarnings)) {
  for (std::size_t i = 0; i < threads; ++i) {
    waiting_rows.push_back(&metrics.gauge(Metric::kServeWaitingRows,
                                          {{.name = "thread", .value = std::to_string(i)}}));
    // A series exists from the start, so that a rate or an alert does not begin with a gap.
    waiting_rows.back()->set(0);
  }
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    answers_[i] = &metrics.counter(Metric::kServeRequests,
                                   {{.name = "code", .value = std::to_string(kCodes[i])}});
  }
  connections.set(0);
  ready.set(0);
}

Counter& ServeMeters::answers(int status) noexcept {
  const auto* const found = std::ranges::find(kCodes, status);
  constexpr std::size_t kPlaceOf500 = 13;
  static_assert(kCodes[kPlaceOf500] == 500);
  // An unlisted status counts as 500, so that the sum over all codes is the number of answers.
  return *answers_[found == kCodes.end() ? kPlaceOf500
                                         : static_cast<std::size_t>(found - kCodes.begin())];
}

}  // namespace disttf::roles
