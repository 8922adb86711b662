// `disttf plus`: the smoke test of a cluster of servers (roles/servers/shell/order_server.h), after
// TFMesos' plus.py. 10 on ps 0 plus 32 on ps 1, added on worker 1, asked of worker 0, must be 42.
//
// Whoever asks is no task of the cluster: it speaks as the evaluator, which need not be listed.
#pragma once

#include <chrono>
#include <memory>

#include "net/wire/cluster.h"

namespace disttf::net {
class Credentials;  // net/transport/credentials.h
}

namespace disttf::roles {

struct PlusOptions {
  net::Cluster cluster;
  std::shared_ptr<net::Credentials> credentials = {};  // as Task's
  bool verbose = false;           // a line for each task, too: round trip, version, whom it reaches
  std::chrono::seconds wait{10};  // for servers that are not there yet
  std::chrono::seconds silence{10};  // of a server that was reached
};

// Prints the sum, where all went well, as the last line of standard output. Returns the exit code.
// Throws Failure: kLostPeers with a list of the tasks that are not there, or what a server said.
int run_plus(const PlusOptions& options);

}  // namespace disttf::roles
