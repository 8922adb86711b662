// The chief role: the chief task, or worker 0 where the cluster has none. Trains like any worker
// and besides starts the run, evaluates it, and ends it.
#pragma once

#include "roles/trainer.h"

namespace disttf::roles {

// Returns the exit code. Throws Failure.
int run_chief(const TrainerOptions& options);

}  // namespace disttf::roles
