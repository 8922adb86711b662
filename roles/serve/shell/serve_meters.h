// The service's own metrics. All threads count; scrapes read at any time.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "run/monitor/shell/metric_registry.h"

namespace disttf::roles {

struct ServeMeters {
  ServeMeters(MetricRegistry& metrics, std::size_t threads);
  // The counter of answers with this status.
  [[nodiscard]] Counter& answers(int status) noexcept;

  Histogram& seconds;
  Counter& rows;
  Histogram& batch_rows;
  std::vector<Gauge*> waiting_rows;  // by thread
  Gauge& connections;
  Gauge& version;
  Counter& loaded;
  Counter& refused;
  Gauge& ready;
  Counter& range_warnings;

 private:
  static constexpr std::array kCodes = {200, 304, 400, 401, 403, 404, 405, 408, 413,
                                        415, 417, 421, 431, 500, 501, 503, 504, 505};
  std::array<Counter*, kCodes.size()> answers_{};
};

}  // namespace disttf::roles
