// The page of a run whose chief is nobody's but its own: a launch has one for all of its tasks.
#pragma once

#include <memory>

#include "roles/monitor/shell/page_thread.h"
#include "roles/process/stop_signal.h"
#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

// From now on, also while there is nothing to show yet; what may be asked for there is told `stop`,
// which must outlive it, or this process. nullptr: none is asked for.
[[nodiscard]] std::unique_ptr<PageThread> open_page(const TrainerOptions& options,
                                                    StopSignal& stop);

}  // namespace disttf::roles
