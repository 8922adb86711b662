// A thread of a task, or a sentence that says why it could not be started.
#pragma once

#include <functional>
#include <thread>

#include "run/process/stop_signal.h"

namespace disttf::roles {

// Starts a thread. A limit on threads that other processes use up for a moment must not end a task,
// so it retries for up to 2 s. Then throws std::system_error.
[[nodiscard]] std::thread start_thread(std::function<void()> body);
// The same for a thread that no other thread waits for: with more runnable threads than processors,
// it gets a ninth of another thread's time.
[[nodiscard]] std::thread start_background_thread(std::function<void()> body);
// The same as the first, for a thread that the task cannot do without: an exception of `body` ends
// the task, through `stop`, which must outlive the thread.
[[nodiscard]] std::thread start_thread(StopSignal& stop, std::function<void()> body);

}  // namespace disttf::roles
