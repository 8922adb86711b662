// What this process is and takes, for whoever watches it.
#pragma once

#include "roles/monitor/core/task_metrics.h"

namespace disttf::roles {

// Callable from any thread; about 20 us. What the system does not tell is 0, or empty.
[[nodiscard]] ProcessFacts process_facts();

// Seconds since the epoch: the time of a record.
[[nodiscard]] double record_time();

}  // namespace disttf::roles
