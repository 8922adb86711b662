// The end of a task whose run is over.
#pragma once

#include "roles/process/stop_signal.h"
#include "roles/run/task.h"

namespace disttf::roles {

// kDone, at once or when a signal has come: one that came before counts. `stop` is the one that has
// watched for signals during the run.
[[nodiscard]] int finish(OnFinish on_finish, const StopSignal& stop);

// What the log says of a task that stays.
void log_idle();

}  // namespace disttf::roles
