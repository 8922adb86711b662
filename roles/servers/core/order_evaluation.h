// Evaluates a request (net/wire/order.h): the server computes its own parts of the expression and
// lists the parts that it must request from other servers.
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
#include "net/wire/order.h"
#include "roles/run/task.h"

namespace disttf::roles {

// A part of the request that another server must compute.
struct AskServer {
  net::TaskId task;
  std::span<const net::OrderNode> part;  // of the order
};

struct OrderStep {
  std::variant<net::OrderResult, net::Refusal, AskServer> outcome;
  std::vector<std::int64_t> sums = {};  // the results of its own additions so far, in order
};

// Evaluates the request as far as the answers of other servers allow, one per AskServer, in order.
// `version`: this server's. REQUIRES: net::decode() has accepted `order`.
//
// Terminates: an operand is shorter than its expression, and a task that computes its own part asks
// no other.
[[nodiscard]] OrderStep evaluate(std::span<const net::OrderNode> order, const Task& task,
                                 const std::string& version,
                                 std::span<const net::OrderResult> answers);

}  // namespace disttf::roles
