// What the kernel says of this process, as metrics: the processor time, memory and descriptors that
// every exporter of Prometheus tells.
#pragma once

#include <span>

#include "roles/monitor/core/metric_text.h"

namespace disttf::roles {

// Fills in its families. `families`: one for each Metric, in order, as MetricRegistry::read() gives
// them. `started`: when this process was, in seconds since the epoch. What /proc does not tell, as
// in an empty root, is left out. Callable from any thread.
void add_process_metrics(std::span<MetricFamily> families, double started);

}  // namespace disttf::roles
