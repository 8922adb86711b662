// The chief role: the chief task, or worker 0 where the cluster has none. Trains like any worker
// and besides starts the run, evaluates it, and ends it.
#pragma once

#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

// From the first step to the result. Throws Failure, also when `stop` ends it.
void lead(const TrainerOptions& options, StopSignal& stop);

// The task. Returns the exit code. Throws Failure.
int run_chief(const TrainerOptions& options);

}  // namespace disttf::roles
