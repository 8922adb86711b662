// The server role: a task that does nothing but what it is ordered to, by `disttf plus` for one.
// TFMesos' fine-grained mode has such tasks.
//
// An order is an expression (net/order.h) whose every part names the task that is to compute it. A
// server computes its own parts and asks the tasks of the others. One thread, an event loop with
// one coroutine per connection; a server ends when a signal tells it to.
#pragma once

#include <string>

#include "roles/task.h"

namespace disttf::roles {

// `version`: what it answers DESCRIBE with. Returns kDone after SIGINT or SIGTERM, which is how its
// life ends. Throws Failure(kCannotListen).
int run_order_server(const Task& task, const std::string& version);

}  // namespace disttf::roles
