// Facts about this process for its reports.
#pragma once

#include "run/monitor/core/task_metrics.h"

namespace disttf::roles {

// Callable from any thread; takes about 20 us. Unknown facts are 0 or empty.
[[nodiscard]] ProcessFacts process_facts();

// Seconds since the epoch: the time of a record.
[[nodiscard]] double record_time();

}  // namespace disttf::roles
