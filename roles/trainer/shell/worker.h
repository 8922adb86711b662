// The worker role: trains with what the chief published, says goodbye, and exits.
#pragma once

#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

// Returns the exit code; a run that is over already is 0 at once. Throws Failure.
int run_worker(const TrainerOptions& options);

}  // namespace disttf::roles
