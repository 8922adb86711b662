// The end of a task whose run is over.
#pragma once

#include "run/process/stop_signal.h"
#include "run/task.h"

namespace disttf::roles {

// Returns kDone, at once or after a signal, depending on `on_finish`; an earlier signal counts.
// `stop` is the one that watched for signals during the run.
[[nodiscard]] int finish(OnFinish on_finish, const StopSignal& stop);

// Logs that the task stays.
void log_idle();

}  // namespace disttf::roles
