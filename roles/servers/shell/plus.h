// `disttf plus`: the smoke test of a cluster of servers (roles/servers/shell/task_server.h), after
// TFMesos' plus.py. 10 on ps 0 plus 32 on ps 1, added on worker 1, requested from worker 0, must be
// 42.
//
// The process is no task of the cluster: it connects as the evaluator, which need not be listed.
#pragma once

#include <chrono>
#include <memory>

#include "net/wire/cluster.h"

namespace disttf::net {
class Credentials;  // net/tls/credentials.h
}

namespace disttf::roles {

struct PlusOptions {
  net::Cluster cluster;
  std::shared_ptr<net::Credentials> credentials = {};  // as in Task
  bool verbose = false;           // also print each task's round trip, version and reachable tasks
  std::chrono::seconds wait{10};  // for servers to start
  std::chrono::seconds heartbeat_timeout{10};  // heartbeat timeout of a connected server
};

// Prints the sum as the last line of standard output, if all is well. Returns the exit code. Throws
// Failure: kLostPeers with a list of missing tasks, or a server's refusal.
int run_plus(const PlusOptions& options);

}  // namespace disttf::roles
