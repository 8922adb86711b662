// Facts about this process, for its reports and as Prometheus' metrics.
#pragma once

#include <chrono>
#include <span>

#include "run/monitor/core/metric_text.h"
#include "run/monitor/core/task_metrics.h"

namespace disttf::roles {

// Callable from any thread; takes about 20 us. Unknown facts are 0 or empty.
[[nodiscard]] ProcessFacts process_facts();

// Seconds since the epoch: the time of a record.
[[nodiscard]] double record_time(
    std::chrono::system_clock::time_point time = std::chrono::system_clock::now());

// The kernel's facts about this process, as metrics: CPU time, memory and descriptors, as every
// exporter of Prometheus has them.

// Sets these families. `families`: one per Metric, in order, as MetricRegistry::read() returns
// them. `started`: of this process, in seconds since the epoch. Omits what /proc does not have, as
// in an empty root. Callable from any thread.
void add_process_metrics(std::span<MetricFamily> families, double started);

}  // namespace disttf::roles
