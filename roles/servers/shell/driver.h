// The driver: one process that trains on a cluster of servers (roles/servers/shell/task_server.h),
// as in TFMesos' fine-grained mode. It is the chief of the run, as a separate task that is in no
// server's list. It requests from each server the ps or the worker at that server's position in the
// lists.
//
// Both sides send heartbeats on the channel of a request, and the task ends with the channel. A
// task that was killed, or whose server was lost, is restarted under launch's rules; a permanent
// failure ends the run.
//
// The calling thread leads the run; a second thread watches the servers.
// roles/servers/core/server_pool.h makes the decisions.
#pragma once

#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

// `options` are those of a chief whose cluster is the servers' lists. Returns the exit code once
// the servers wait for requests again. Throws Failure: kLostPeers with a list of missing servers, a
// server's refusal, or what a chief throws.
int run_driver(TrainerOptions options);

}  // namespace disttf::roles
