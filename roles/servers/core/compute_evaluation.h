// Evaluates a request (net/wire/server_requests.h): the server computes its own parts of the
// expression and lists the parts that it must request from other servers.
//
// A pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "net/wire/handshake.h"
#include "net/wire/server_requests.h"
#include "run/task.h"

namespace disttf::roles {

// A part of the request that another server must compute.
struct AskServer {
  net::TaskId task;
  std::span<const net::ComputeNode> part;  // of the order
};

struct ComputeStep {
  std::variant<net::ComputeResult, net::Refusal, AskServer> outcome;
  std::vector<std::int64_t> sums = {};  // the results of its own additions so far, in order
};

// Evaluates the request as far as the answers of other servers allow, one per AskServer, in order.
// `version`: this server's. REQUIRES: net::decode() has accepted `request`.
//
// Terminates: an operand is shorter than its expression, and a task that computes its own part asks
// no other.
[[nodiscard]] ComputeStep evaluate(std::span<const net::ComputeNode> request, const Task& task,
                                   const std::string& version,
                                   std::span<const net::ComputeResult> answers);

}  // namespace disttf::roles
