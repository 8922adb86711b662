// The server role: a task that waits for requests of `disttf plus` or of the driver of a run
// (roles/servers/shell/driver.h), as in TFMesos' fine-grained mode.
//
// A request is an expression (net/wire/server_requests.h) whose parts name the tasks that compute
// them: a server computes its own parts and requests the others from their tasks. Or it is a
// request to train (net/wire/server_requests.h): the server's task of the run is then a child
// process that owns the server's port, and lives no longer than the channel of the request. When
// that breaks, the server stops the child and waits for requests again.
// roles/servers/core/server_controller.h and compute_evaluation.h make the decisions.
//
// One thread, an event loop with one coroutine per connection. A signal ends the server, and its
// child with it.
#pragma once

#include <string>
#include <vector>

#include "run/task.h"

namespace disttf::roles {

struct TaskServerOptions {
  Task task;
  std::string version;  // the answer to DESCRIBE
  // Words of its own command line that it passes to the processes that train: the place of the data
  // and the like.
  std::vector<std::string> task_arguments;
};

// Returns kDone after SIGINT or SIGTERM, its normal end. Throws Failure(kCannotListen).
int run_task_server(const TaskServerOptions& options);

}  // namespace disttf::roles
