// The chief role: the chief task, or worker 0 if the cluster has none. It trains like any worker,
// and besides starts the run, evaluates it, and ends it.
#pragma once

#include <chrono>

#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

// Runs from the first step to the result. Returns how long the evaluation of the result took.
// Throws Failure, also if `stop` ends it.
std::chrono::nanoseconds lead(const TrainerOptions& options, StopSignal& stop);

// Runs the task. Returns the exit code. Throws Failure.
int run_chief(const TrainerOptions& options);

}  // namespace disttf::roles
