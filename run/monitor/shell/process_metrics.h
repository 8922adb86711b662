// The kernel's facts about this process, as metrics: CPU time, memory and descriptors, as every
// exporter of Prometheus has them.
#pragma once

#include <span>

#include "run/monitor/core/metric_text.h"

namespace disttf::roles {

// Sets these families. `families`: one per Metric, in order, as MetricRegistry::read() returns
// them. `started`: of this process, in seconds since the epoch. Omits what /proc does not have, as
// in an empty root. Callable from any thread.
void add_process_metrics(std::span<MetricFamily> families, double started);

}  // namespace disttf::roles
