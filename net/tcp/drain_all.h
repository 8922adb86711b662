#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "net/tcp/server_connection.h"

namespace disttf::net {

// Waits until the kernel has all queued frames of these connections, or they have closed; at most
// until `timeout` has passed, however many connections there are. They send side by side, so one
// limit is enough for all.
asio::awaitable<void> drain_all(std::vector<std::shared_ptr<ServerConnection>> connections,
                                std::chrono::milliseconds timeout);

}  // namespace disttf::net
