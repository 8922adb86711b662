// The chief role: the chief task, or worker 0 where the cluster has none. Trains like any worker
// and besides starts the run, evaluates it, and ends it.
#pragma once

#include <chrono>

#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

// From the first step to the result; how long it took to evaluate that. Throws Failure, also when
// `stop` ends it.
std::chrono::nanoseconds lead(const TrainerOptions& options, StopSignal& stop);

// The task. Returns the exit code. Throws Failure.
int run_chief(const TrainerOptions& options);

}  // namespace disttf::roles
