// A thread of a task's own, or a sentence that says why there is none.
#pragma once

#include <functional>
#include <thread>

#include "roles/process/stop_signal.h"

namespace disttf::roles {

// A limit on threads that others use up for a moment must not end a task: where the system grants
// no thread, it is asked again for up to 2 s. Then throws std::system_error.
[[nodiscard]] std::thread start_thread(std::function<void()> body);
// The same for a thread that nobody waits for: where there are fewer processors than threads that
// would run, it gets a ninth of another's time.
[[nodiscard]] std::thread start_background_thread(std::function<void()> body);
// The same as the first for a thread without which the task is nothing: what `body` throws ends the
// task, through `stop`, which must outlive the thread.
[[nodiscard]] std::thread start_thread(StopSignal& stop, std::function<void()> body);

}  // namespace disttf::roles
