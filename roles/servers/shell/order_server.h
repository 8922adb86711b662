// The server role: a task that does nothing but what it is ordered to, by `disttf plus` or by the
// driver of a run (roles/servers/shell/driver.h). TFMesos' fine-grained mode has such tasks.
//
// An order is an expression (net/wire/order.h) whose every part names the task that is to compute
// it: a server computes its own parts and asks the tasks of the others. Or it is to train
// (net/wire/run_order.h): the server's task of the run is then a child process that has the
// server's port, and lives no longer than the channel on which the order came: when that breaks,
// the child is stopped, and the server waits for orders again. The decisions are
// roles/servers/core/server_controller.h and order_evaluation.h.
//
// One thread, an event loop with one coroutine per connection; a server ends when a signal tells it
// to, and its child with it.
#pragma once

#include <string>
#include <vector>

#include "roles/run/task.h"

namespace disttf::roles {

struct ServerOptions {
  Task task;
  std::string version;  // what it answers DESCRIBE with
  // What the processes that it trains with are given of its own command line: where the data is,
  // ...
  std::vector<std::string> task_arguments;
};

// Returns kDone after SIGINT or SIGTERM, which is how its life ends. Throws Failure(kCannotListen).
int run_order_server(const ServerOptions& options);

}  // namespace disttf::roles
