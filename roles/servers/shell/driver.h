// The driver: one process that trains on a cluster of servers (roles/servers/shell/order_server.h),
// as TFMesos' fine-grained mode does. It is the chief of the run, a chief task of its own that the
// servers need not know of; each server is ordered to be the ps or the worker that its place in the
// lists says.
//
// Each side beats on the channel of an order, and the task ends with it. A
// task that was killed, or whose server was lost, is started again under launch's rules; one that
// fails for good ends the run.
//
// The run is led on the calling thread; the servers are watched on one of the driver's own. The
// decisions are roles/servers/core/server_fleet.h.
#pragma once

#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

// `options` as of a chief; its task's cluster are the servers' lists. Returns the exit code once
// the servers wait for orders again. Throws Failure: kLostPeers with a list of the servers that are
// not there, what a server said, or what a chief throws.
int run_driver(TrainerOptions options);

}  // namespace disttf::roles
