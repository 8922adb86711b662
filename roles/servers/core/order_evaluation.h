// What comes of an order (net/wire/order.h): the server's own parts of the expression, and which
// parts it has to ask other servers for.
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

// The other server is to compute a part of the order.
struct AskServer {
  net::TaskId task;
  std::span<const net::OrderNode> part;  // of the order
};

struct OrderStep {
  std::variant<net::OrderResult, net::Refusal, AskServer> outcome;
  std::vector<std::int64_t> sums = {};  // of its own additions so far, in order
};

// As far as the order can be computed with what others have answered, each to one AskServer, in
// order. `version`: what it says of itself. REQUIRES: `order` is what net::decode() has taken.
//
// Ends: an operand is a shorter order than what it is an operand of, and a task that is asked for
// its own part does not ask on.
[[nodiscard]] OrderStep evaluate(std::span<const net::OrderNode> order, const Task& task,
                                 const std::string& version,
                                 std::span<const net::OrderResult> answers);

}  // namespace disttf::roles
