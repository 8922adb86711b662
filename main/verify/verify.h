// disttf verify: checks that a user's own program is a client of docs/program_protocol.md, and that
// its gradients are bit-identical whenever and wherever it computes them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "net/wire/cluster.h"
#include "roles/launch/shell/program_command.h"

namespace disttf::roles {

struct VerifyOptions {
  Program program;
  // The cluster that the program receives; it is worker 0, the chief.
  net::Cluster cluster;
  std::uint64_t steps = 3;  // at least 1
  std::size_t batch_size = 100;
  std::uint64_t seed = 1;
  std::chrono::seconds timeout{60};       // of an answer, see ProgramSession; 0: no limit
  std::chrono::seconds end_timeout{600};  // after END and REFUSED; 0: no limit
  bool as_json = false;
};

// Starts the program four times, prints a line for each check, or one JSON object, and returns the
// exit code: kDone or kError. Throws Failure on a signal.
int run_verify(const VerifyOptions& options);

}  // namespace disttf::roles
