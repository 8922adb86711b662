// The page of a run whose chief was not started by a launch: a launch has one for all of its tasks.
#pragma once

#include <memory>

#include "roles/trainer/shell/trainer.h"
#include "run/monitor/shell/page_server.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {

// Serves the page from now on, also while there is nothing to show yet. Requests from it go to
// `stop`, which must outlive it, or to this process. Returns nullptr if no page is requested.
[[nodiscard]] std::unique_ptr<PageThread> open_page(const TrainerOptions& options,
                                                    StopSignal& stop);

}  // namespace disttf::roles
