// The worker role: trains with the configuration that the chief has published, sends GOODBYE, and
// exits.
#pragma once

#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

// Returns the exit code; 0 at once if the run is over already. Throws Failure.
int run_worker(const TrainerOptions& options);

}  // namespace disttf::roles
